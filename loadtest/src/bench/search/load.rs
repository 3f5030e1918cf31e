//! Loading a million records: generated, analysed and copied straight into Postgres, for through
//! the service it would take an hour. What stands around them is made as a deployment makes it.

use std::thread;

use anyhow::bail;

use super::copy::copy;
use super::corpus::{Class, Corpus};
use super::loaded::{Loaded, Tenant};
use super::places::{Places, create_tenants};
use super::psql::script;
use super::threads::join;
use crate::bench::rig::Rig;
use crate::output::complain;
use crate::process::output_of;

/// What Postgres runs with while it is filled: a load that is cut off is begun anew, so nothing
/// need reach the disk before its end.
pub const SETTINGS: [(&str, &str); 9] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "1GB"),
    ("shared_buffers", "1GB"),
    ("maintenance_work_mem", "2GB"),
];
/// Small tenants that are searched, beside the largest: from the middle of all on.
const SEARCHED_SMALL: usize = 100;
/// Words of each class that are searched for.
const WORDS: usize = 24;

/// Fills a prepared database.
///
/// # Errors
/// If Postgres or the service's program refuses something.
pub fn load(rig: &Rig, corpus: &Corpus, rows: usize) -> anyhow::Result<Loaded> {
    let tenants = corpus.tenants();
    let keys = create_tenants(rig, tenants)?;
    complain("tenants and their keys are made");
    let places = Places::create(rig, tenants)?;
    script(rig, include_str!("single.sql"))?;
    let constraints = "select i.indexrelid from pg_index i join pg_constraint c \
        on c.conindid = i.indexrelid";
    let indexes = rig.psql(&format!(
        "select pg_get_indexdef(indexrelid), indexrelid in ({constraints}), \
           indexrelid::regclass from pg_index where indrelid = 'public.records'::regclass"
    ))?;
    let indexes: Vec<Index> = indexes.lines().filter_map(Index::read).collect();
    for index in indexes.iter().filter(|index| !index.is_constraint) {
        rig.psql(&format!("drop index {}", index.name))?;
    }
    let frequencies = copy(rig, corpus, rows, &places)?;
    complain("records are copied");
    script(
        rig,
        "begin; truncate public.records cascade;
         insert into public.records select * from single.records; commit;",
    )?;
    build(rig, &indexes)?;
    complain("indexes are built");
    script(rig, "vacuum analyze; checkpoint;")?;
    let tenant = |index: usize| Tenant {
        key: keys[index].clone(),
        id: places.tenants[index].id,
    };
    let words = |class| match frequencies.words(class, rows, WORDS) {
        none if none.is_empty() => bail!("among {rows} records there is no {class:?} word"),
        words => Ok(words),
    };
    Ok(Loaded {
        rows,
        largest: tenant(0),
        small: (tenants / 2..tenants)
            .take(SEARCHED_SMALL)
            .map(tenant)
            .collect(),
        rare: words(Class::Rare)?,
        mid: words(Class::Mid)?,
        common: words(Class::Common)?,
    })
}

/// An index of the shipped table.
struct Index {
    definition: String,
    is_constraint: bool,
    name: String,
}

impl Index {
    fn read(row: &str) -> Option<Self> {
        let mut fields = row.rsplitn(3, '|');
        let (name, is_constraint) = (fields.next()?, fields.next()?);
        Some(Self {
            definition: fields.next()?.replace(" ON ONLY ", " ON "),
            is_constraint: is_constraint == "t",
            name: name.to_owned(),
        })
    }

    fn on(&self, table: &str) -> String {
        self.definition
            .replace(" ON public.records ", &format!(" ON {table} "))
    }
}

/// Builds what was dropped, and the same on the table that is not split, both at once.
fn build(rig: &Rig, indexes: &[Index]) -> anyhow::Result<()> {
    let shipped: Vec<String> = indexes
        .iter()
        .filter(|index| !index.is_constraint)
        .map(|index| index.on("public.records"))
        .collect();
    let single: Vec<String> = indexes
        .iter()
        .map(|index| index.on("single.records"))
        .collect();
    let builds = [shipped, single];
    thread::scope(|scope| {
        let threads: Vec<_> = builds
            .iter()
            .map(|statements| {
                scope.spawn(move || {
                    for statement in statements {
                        let mut psql = rig.postgres_program("psql", "postgres");
                        output_of(psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-c", statement]))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(join)
    })
}
