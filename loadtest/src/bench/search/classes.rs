//! What searches cost Postgres: the time on a processor of one backend, by kind of query and size
//! of tenant, beside a read by primary key; and the gate beside the same without it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use super::backend::Backend;
use super::captured::Captured;
use super::gate::{BY_KEY, CHOSEN, DEPTHS, EXPLICIT, GATE, fallback};
use super::loaded::{Loaded, Tenant};
use super::mix::{Case, Kind, Scope};
use crate::bench::capture::{ROLE, Statement};
use crate::bench::rig::Rig;

/// Searches of each kind, in each scope and size of tenant.
const EACH: usize = 12;
/// Rounds in which every search runs once, after one that counts for nothing.
const ROUNDS: usize = 5;

/// Milliseconds of a processor, ascending.
pub struct Costs(Vec<f64>);

impl Costs {
    fn of(mut costs: Vec<f64>) -> Self {
        costs.sort_by(f64::total_cmp);
        Self(costs)
    }

    /// What a share of all stays within.
    pub fn at(&self, share: f64) -> f64 {
        let place = (share * self.0.len() as f64) as usize;
        let last = self.0.len().saturating_sub(1);
        self.0.get(place.min(last)).copied().unwrap_or(f64::NAN)
    }
}

/// Whose searches of which kind, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// In the largest tenant, or in small ones.
    pub is_largest: bool,
    /// Across the tenant or in a project.
    pub scope: Scope,
    /// What for.
    pub kind: Kind,
}

/// What was measured.
pub struct Measured {
    /// Searches.
    pub classes: BTreeMap<Class, Costs>,
    /// Reads by primary key.
    pub by_key: Costs,
}

impl Measured {
    /// The highest 95th percentile of a size of tenant, over the median read by key.
    pub fn worst(&self, is_largest: bool) -> f64 {
        let of = self
            .classes
            .iter()
            .filter(|(class, _)| class.is_largest == is_largest);
        let worst = of.map(|(_, costs)| costs.at(0.95)).fold(0.0, f64::max);
        worst / self.by_key.at(0.5)
    }
}

/// The searches to be measured.
pub fn cases(loaded: &Loaded) -> Vec<Case> {
    let mut cases = Vec::new();
    for is_largest in [true, false] {
        for scope in [Scope::Tenant, Scope::Project] {
            for kind in Kind::ALL {
                let numbers = (0..EACH).map(|nth| nth * 2);
                cases.extend(numbers.map(|nth| Case::new(loaded, kind, scope, is_largest, nth)));
            }
        }
    }
    cases
}

/// Runs the searches in turns on one backend of the service's role.
///
/// # Errors
/// If Postgres refuses a statement.
pub fn measure(rig: &Rig, loaded: &Loaded, searches: &[Captured]) -> anyhow::Result<Measured> {
    let mut backend = Backend::connect(rig, ROLE)?;
    let (mut classes, mut by_key) = (BTreeMap::<Class, Vec<f64>>::new(), Vec::new());
    for round in 0..=ROUNDS {
        for (nth, search) in searches.iter().enumerate() {
            backend.run(search.settings_script(&[])?.trim_end_matches(";\n"))?;
            let mut sum = 0;
            for statement in search.searches() {
                sum += backend.execute(statement)?.1;
            }
            let (is_largest, scope, kind) =
                (search.case.is_largest, search.case.scope, search.case.kind);
            let class = Class {
                is_largest,
                scope,
                kind,
            };
            // Between searches, so that both find a processor's caches as the other left them.
            let read = read_by_key(&mut backend, &loaded.largest, nth)?;
            if round > 0 {
                classes.entry(class).or_default().push(millis(sum));
                by_key.push(read);
            }
        }
    }
    let classes = classes
        .into_iter()
        .map(|(class, costs)| (class, Costs::of(costs)));
    Ok(Measured {
        classes: classes.collect(),
        by_key: Costs::of(by_key),
    })
}

fn read_by_key(backend: &mut Backend, tenant: &Tenant, nth: usize) -> anyhow::Result<f64> {
    backend.run(&format!("set app.tenant = '{}'", tenant.id))?;
    let number = 1 + nth;
    let (rows, cost) = backend.execute(&statement(BY_KEY, &[&tenant.id, &number]))?;
    if rows.is_empty() {
        bail!("there is no record {number}");
    }
    Ok(millis(cost))
}

/// How much the gate costs over the same statement without it, by kind: the ratio of the medians.
///
/// # Errors
/// If the two answer differently: then the statement here is not the gate's any more.
pub fn gate_over_explicit(rig: &Rig, loaded: &Loaded) -> anyhow::Result<BTreeMap<Kind, f64>> {
    let (mut gate, mut explicit) = (
        Backend::connect(rig, ROLE)?,
        Backend::connect(rig, "postgres")?,
    );
    let (id, author) = (loaded.largest.id, reader(rig, &loaded.largest)?);
    gate.run(&format!("set app.tenant = '{id}'"))?;
    // As the service sets for each transaction.
    gate.run("set plan_cache_mode = force_generic_plan")?;
    // As the gate makes the plans of its searches.
    explicit.run("set plan_cache_mode = force_custom_plan")?;
    let mut ratios = BTreeMap::new();
    for kind in Kind::MIXED {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            for nth in 0..EACH {
                let case = Case::new(loaded, kind, Scope::Tenant, true, nth * 2);
                let fallback = fallback(&case.words);
                let (words, stages) = (array(&case.words), array(&fallback));
                let through = gate.execute(&statement(GATE, &[&words, &stages, &author]))?;
                let without = explicitly(&mut explicit, &words, &fallback, author, id)?;
                if numbers(&through.0) != without.0 {
                    bail!("the gate answers {words} otherwise than its statements in gate.rs");
                }
                if round > 0 {
                    ours.push(millis(through.1));
                    theirs.push(millis(without.1));
                }
            }
        }
        ratios.insert(kind, Costs::of(ours).at(0.5) / Costs::of(theirs).at(0.5));
    }
    Ok(ratios)
}

/// What the gate does, statement by statement.
fn explicitly(
    backend: &mut Backend,
    words: &str,
    fallback: &[String],
    author: i32,
    tenant: i32,
) -> anyhow::Result<(BTreeSet<i64>, u64)> {
    let (chosen, mut cost) = backend.execute(&statement(CHOSEN, &[&words, &tenant]))?;
    let chosen = chosen.trim_end();
    let (stages, depth) = match chosen.is_empty() {
        true => (fallback.to_vec(), DEPTHS.1),
        false => (vec![chosen.to_owned()], DEPTHS.0),
    };
    let mut found = BTreeSet::new();
    for stage in stages {
        let asked = statement(EXPLICIT, &[&stage, &author, &tenant, &depth]);
        let (row, more) = backend.execute(&asked)?;
        cost += more;
        found.extend(numbers(&row));
        if found.len() >= 20 {
            break;
        }
    }
    Ok((found, cost))
}

/// The records that an answer packs, twenty bytes each of which the first eight are its key, as
/// Postgres prints bytes.
fn numbers(row: &str) -> BTreeSet<i64> {
    let digits = row.trim_end().trim_start_matches("\\x").as_bytes();
    let (packed, _) = digits.as_chunks::<40>();
    packed
        .iter()
        .filter_map(|one| {
            let key = std::str::from_utf8(&one[..16]).ok()?;
            i64::from_str_radix(key, 16).ok()
        })
        .collect()
}

/// A list as Postgres reads it.
fn array(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    format!("{{{}}}", quoted.join(","))
}

/// The principal of a tenant's owner.
fn reader(rig: &Rig, tenant: &Tenant) -> anyhow::Result<i32> {
    let owner = format!(
        "select min(principal_id) from principals where tenant_id = {}",
        tenant.id
    );
    Ok(rig.psql(&owner)?.trim().parse()?)
}

fn statement(text: &str, values: &[&dyn ToString]) -> Statement {
    Statement {
        text: text.to_owned(),
        values: values.iter().map(|value| Some(value.to_string())).collect(),
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1_000_000.0
}
