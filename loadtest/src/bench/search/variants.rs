//! The shipped schema beside others with the same rows: one table that is not split by tenant,
//! and a search that ranks every match.

use std::time::Duration;

use anyhow::Context;

use super::captured::Captured;
use super::gate::{RANK_ALL, all_of};
use crate::bench::Timing;
use crate::bench::against::interleave;
use crate::bench::capture::{self, ROLE, Statement, Variables};
use crate::bench::measure::{Measure, Rounds};
use crate::bench::pgbench::Pgbench;
use crate::bench::rig::Rig;

/// Where the table that is not split stands, and the functions that search it.
const SINGLE: [(&str, &str); 1] = [("search_path", "single, public")];

/// The three sides, ready to run.
pub struct Variants<'a> {
    rig: &'a Rig,
    timing: &'a Timing,
    shipped: Pgbench,
    single: Pgbench,
    rank_all: Pgbench,
}

impl<'a> Variants<'a> {
    /// From searches with their weights.
    ///
    /// # Errors
    /// If scripts cannot be written.
    pub fn new(
        rig: &'a Rig,
        timing: &'a Timing,
        mix: &[(&Captured, usize)],
    ) -> anyhow::Result<Self> {
        let searching = |name: &str, more: &[(&str, &str)]| -> anyhow::Result<Pgbench> {
            let mut variables = Variables::default();
            let scripts = mix.iter().map(|(search, weight)| {
                Ok((search.searches_script(more, &mut variables)?, *weight))
            });
            let scripts: Vec<(String, usize)> = scripts.collect::<anyhow::Result<_>>()?;
            Pgbench::new(rig.folder(name)?, ROLE, &scripts, variables)
        };
        let mut variables = Variables::default();
        let ranking = mix.iter().map(|(search, weight)| {
            let values = [
                search.case.tenant.id.to_string(),
                all_of(&search.case.words),
            ];
            let statement = Statement {
                text: RANK_ALL.to_owned(),
                values: values.map(Some).to_vec(),
            };
            let settings = "set plan_cache_mode = force_custom_plan;\n";
            let statement = capture::script(&[statement], None, &mut variables);
            (format!("{settings}{statement}"), *weight)
        });
        let ranking: Vec<(String, usize)> = ranking.collect();
        Ok(Self {
            rig,
            timing,
            shipped: searching("shipped", &[])?,
            single: searching("single", &SINGLE)?,
            // Nothing holds it back: what it costs is its ranking alone.
            rank_all: Pgbench::new(rig.folder("rank-all")?, "postgres", &ranking, variables)?,
        })
    }

    /// The shipped schema beside the table that is not split.
    ///
    /// # Errors
    /// If pgbench fails, or a statement does.
    pub fn beside_single(&self) -> anyhow::Result<Rounds> {
        self.beside("one table", &self.single)
            .context("one table that is not split")
    }

    /// The shipped schema beside ranking every match.
    ///
    /// # Errors
    /// As [`Self::beside_single`].
    pub fn beside_rank_all(&self) -> anyhow::Result<Rounds> {
        self.beside("every match ranked", &self.rank_all)
            .context("ranking every match")
    }

    fn beside(&self, name: &str, other: &Pgbench) -> anyhow::Result<Rounds> {
        let run = |side: &Pgbench, time: Duration| -> anyhow::Result<Measure> {
            side.run(self.rig, self.timing.connections, time)
        };
        interleave(
            self.timing,
            ("shipped", |time, _| run(&self.shipped, time)),
            (name, |time, _| run(other, time)),
        )
    }
}
