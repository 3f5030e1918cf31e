//! Tenants, their keys and projects: made as a deployment makes them, and where the database has
//! them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use anyhow::bail;

use super::corpus::projects_of;
use super::psql::script;
use super::threads::{THREADS, join};
use crate::bench::load::project_key;
use crate::bench::rig::Rig;

/// Where records go, as the database numbers it.
pub struct Places {
    /// By index.
    pub tenants: Vec<Place>,
}

/// A tenant's numbers.
pub struct Place {
    /// Its own.
    pub id: i32,
    /// Its owner's, who writes every record.
    pub author: i32,
    /// Its projects', by index.
    pub projects: Vec<i32>,
    /// Records so far.
    pub records: Cell<i64>,
}

impl Places {
    /// Makes the projects of every tenant, each with its position.
    ///
    /// # Errors
    /// If Postgres refuses them.
    pub fn create(rig: &Rig, tenants: usize) -> anyhow::Result<Self> {
        let mut values = String::new();
        for tenant in 0..tenants {
            for project in 0..projects_of(tenant) {
                let comma = if values.is_empty() { "" } else { "," };
                let key = project_key(project);
                let _ = write!(values, "{comma}('tenant-{tenant}','{key}',{project})");
            }
        }
        script(
            rig,
            &format!(
                "insert into projects (tenant_id, key, key_folded, name, name_folded, position)
                 select t.tenant_id, v.key, v.key, 'project-' || v.nth, 'project-' || v.nth,
                   v.nth + 1
                 from (values {values}) v (tenant, key, nth) join tenants t on t.name = v.tenant;"
            ),
        )?;
        let rows = rig.psql(
            "select t.name, t.tenant_id, p.principal_id,
               (select string_agg(project_id::text, ',' order by position) from projects j
                where j.tenant_id = t.tenant_id)
             from tenants t join principals p on p.tenant_id = t.tenant_id",
        )?;
        let mut by_index = BTreeMap::new();
        for row in rows.lines() {
            let fields: Vec<&str> = row.split('|').collect();
            let [name, id, author, projects] = fields[..] else {
                bail!("a tenant's row is {row:?}");
            };
            let index: usize = name.trim_start_matches("tenant-").parse()?;
            let projects = projects.split(',').map(str::parse);
            by_index.insert(
                index,
                Place {
                    id: id.parse()?,
                    author: author.parse()?,
                    projects: projects.collect::<Result<_, _>>()?,
                    records: Cell::new(0),
                },
            );
        }
        Ok(Self {
            tenants: by_index.into_values().collect(),
        })
    }

    /// What is left to write when all records are there.
    pub fn counters(&self) -> String {
        let rows = self.tenants.iter().map(|place| {
            let (id, records) = (place.id, place.records.get());
            let position = records + place.projects.len() as i64;
            format!("({id},{records}::bigint,{position}::bigint)")
        });
        let rows: Vec<String> = rows.collect();
        format!(
            "update tenant_counters c set observation = v.records, position = v.position
             from (values {}) v (tenant_id, records, position) where c.tenant_id = v.tenant_id;
             update projects p set records = v.records
             from (select tenant_id, project_id, count(*) as records from single.records
                   group by 1, 2) v
             where p.tenant_id = v.tenant_id and p.project_id = v.project_id;",
            rows.join(",")
        )
    }
}

/// Makes every tenant with the service's own program; answers their keys.
///
/// # Errors
/// If the program refuses one.
pub fn create_tenants(rig: &Rig, tenants: usize) -> anyhow::Result<Vec<String>> {
    let create = |first: usize| -> anyhow::Result<Vec<String>> {
        let own = (first..tenants).step_by(THREADS);
        own.map(|index| rig.create_tenant(&format!("tenant-{index}")))
            .collect()
    };
    let shares: Vec<Vec<String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || create(first)))
            .collect();
        let joined = threads.into_iter().map(join);
        joined.collect::<anyhow::Result<_>>()
    })?;
    let keys = (0..tenants).map(|index| shares[index % THREADS][index / THREADS].clone());
    Ok(keys.collect())
}
