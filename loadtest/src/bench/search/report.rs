//! The tables for people and the figures for programs, each with its goal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::adversarial::Answered;
use super::classes::Measured;
use super::mix::{Kind, Scope};
use super::served::Served;
use crate::bench::measure::Rounds;
use crate::bench::report::{rounded, table, write_figures};

/// All that was measured.
pub struct Results {
    /// The service beside pgbench and a bare route.
    pub served: Served,
    /// The shipped schema beside one table.
    pub single: Rounds,
    /// And beside ranking every match.
    pub rank_all: Rounds,
    /// What searches cost Postgres.
    pub classes: Measured,
    /// The gate over its statement, by kind.
    pub gate: BTreeMap<Kind, f64>,
    /// The queries that cost the most.
    pub adversarial: Vec<Answered>,
}

/// A figure with its goal.
pub struct Figure {
    /// Its name in the file.
    pub name: &'static str,
    /// What was measured.
    pub value: f64,
    goal: Goal,
}

enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    fn is_reached(&self) -> bool {
        match self.goal {
            Goal::AtLeast(least) => self.value >= least,
            Goal::AtMost(most) => self.value <= most,
        }
    }

    fn goal(&self) -> (f64, &'static str) {
        match self.goal {
            Goal::AtLeast(least) => (least, "or more"),
            Goal::AtMost(most) => (most, "or less"),
        }
    }

    /// How the goal was missed, if it was.
    pub fn missed(&self) -> Option<String> {
        let (goal, side) = self.goal();
        let missed = format!("{} {:.3}, goal {goal} {side}", self.name, self.value);
        (!self.is_reached()).then_some(missed)
    }
}

impl Results {
    /// The figures that have goals.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |name, value, goal| Figure { name, value, goal };
        let served = &self.served;
        let worst_gate = self.gate.values().copied().fold(0.0, f64::max);
        let unanswered = self.adversarial.iter().filter(|one| one.refusal.is_some());
        vec![
            figure(
                "server_vs_pgbench",
                served.rounds.ratio(),
                Goal::AtLeast(0.8),
            ),
            figure(
                "schema_vs_rank_all",
                self.rank_all.ratio(),
                Goal::AtLeast(10.0),
            ),
            figure(
                "schema_vs_single_table",
                self.single.ratio(),
                Goal::AtLeast(1.8),
            ),
            figure(
                "largest_p95_vs_pk",
                self.classes.worst(true),
                Goal::AtMost(120.0),
            ),
            figure(
                "small_p95_vs_pk",
                self.classes.worst(false),
                Goal::AtMost(5.0),
            ),
            figure(
                "app_cpu_vs_hello",
                served.service_us / served.hello_us,
                Goal::AtMost(20.0),
            ),
            figure("gate_vs_where", worst_gate, Goal::AtMost(1.25)),
            figure(
                "adversarial_unanswered",
                unanswered.count() as f64,
                Goal::AtMost(0.0),
            ),
        ]
    }

    /// Writes `search.json`, one flat object.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &Path, more: Map<String, Value>) -> anyhow::Result<()> {
        let mut figures = Map::new();
        for figure in self.figures() {
            figures.insert(figure.name.to_owned(), rounded(figure.value));
            figures.insert(format!("{}_goal", figure.name), json!(figure.goal().0));
        }
        let mut put = |name: String, value: f64| figures.insert(name, rounded(value));
        for (prefix, side) in [
            ("server", self.served.rounds.service()?),
            ("pgbench", self.served.rounds.raw()?),
            ("shipped", self.single.service()?),
            ("single_table", self.single.raw()?),
            ("rank_all", self.rank_all.raw()?),
        ] {
            put(format!("{prefix}_per_s"), side.rate);
            put(format!("{prefix}_p50_ms"), side.p50);
            put(format!("{prefix}_p95_ms"), side.p95);
            put(format!("{prefix}_p99_ms"), side.p99);
        }
        put("app_cpu_us".to_owned(), self.served.service_us);
        put("postgres_cpu_us".to_owned(), self.served.postgres_us);
        put("hello_cpu_us".to_owned(), self.served.hello_us);
        let share = self.served.service_us / self.served.postgres_us;
        put("app_cpu_vs_postgres".to_owned(), share);
        put("pk_p50_cpu_ms".to_owned(), self.classes.by_key.at(0.5));
        for (class, costs) in &self.classes.classes {
            let name = class_name(class.is_largest, class.scope, class.kind).replace(' ', "_");
            put(format!("{name}_p50_cpu_ms"), costs.at(0.5));
            put(format!("{name}_p95_cpu_ms"), costs.at(0.95));
        }
        for (kind, ratio) in &self.gate {
            put(
                format!("gate_vs_where_{}", kind.name().replace(' ', "_")),
                *ratio,
            );
        }
        let partial = self.adversarial.iter().filter(|one| one.is_partial);
        put("adversarial_partial".to_owned(), partial.count() as f64);
        let most = |of: fn(&Answered) -> f64| self.adversarial.iter().map(of).fold(0.0, f64::max);
        put("adversarial_most_cpu_ms".to_owned(), most(|one| one.cpu_ms));
        put("adversarial_most_ms".to_owned(), most(|one| one.ms));
        figures.extend(more);
        write_figures(out, "search", figures)
    }

    /// The tables.
    ///
    /// # Errors
    /// If latencies of rounds cannot be added.
    pub fn tables(&self) -> anyhow::Result<String> {
        let served = &self.served;
        let mut text = String::new();
        for (what, names, rounds) in [
            ("index steps", ["service", "pgbench"], &served.rounds),
            ("searches in SQL", ["as shipped", "one table"], &self.single),
            (
                "searches in SQL",
                ["as shipped", "all ranked"],
                &self.rank_all,
            ),
        ] {
            let sides = [(names[0], rounds.service()?), (names[1], rounds.raw()?)];
            let _ = writeln!(text, "{}\n", table(what, sides));
        }
        let _ = writeln!(
            text,
            "Microseconds of a processor: service {:.0}, Postgres {:.0}, a bare route {:.1}\n",
            served.service_us, served.postgres_us, served.hello_us
        );
        self.push_classes(&mut text);
        self.push_adversarial(&mut text);
        for figure in self.figures() {
            let (goal, side) = figure.goal();
            let word = if figure.is_reached() {
                "reached"
            } else {
                "missed"
            };
            let (name, value) = (figure.name, figure.value);
            let _ = writeln!(text, "{name:<24} {value:>8.3}   goal {goal} {side}: {word}");
        }
        Ok(text.trim_end().to_owned())
    }

    fn push_classes(&self, text: &mut String) {
        let by_key = self.classes.by_key.at(0.5);
        let _ = writeln!(
            text,
            "Milliseconds of a backend's processor; a read by key takes {by_key:.3}\n\
             {:<32} {:>8} {:>8} {:>12} {:>10}",
            "", "p50", "p95", "p95 / by key", "gate"
        );
        for (class, costs) in &self.classes.classes {
            let (p50, p95) = (costs.at(0.5), costs.at(0.95));
            let name = class_name(class.is_largest, class.scope, class.kind);
            let _ = write!(
                text,
                "{name:<32} {p50:>8.3} {p95:>8.3} {:>12.1}",
                p95 / by_key
            );
            let gated = class.is_largest && class.scope == Scope::Tenant;
            match self.gate.get(&class.kind).filter(|_| gated) {
                Some(ratio) => {
                    let _ = writeln!(text, " {ratio:>10.2}");
                }
                None => text.push('\n'),
            }
        }
        text.push('\n');
    }

    fn push_adversarial(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "Queries that cost the most, in the largest tenant, then in its largest project\n\
             {:<32} {:>5} {:>8} {:>8}",
            "", "rows", "cpu ms", "ms"
        );
        for one in &self.adversarial {
            let end = match (&one.refusal, one.is_partial) {
                (Some(refusal), _) => refusal,
                (None, true) => "partial",
                (None, false) => "",
            };
            let _ = writeln!(
                text,
                "{:<32} {:>5} {:>8.1} {:>8.1} {end}",
                one.name, one.rows, one.cpu_ms, one.ms
            );
        }
        text.push('\n');
    }
}

fn class_name(is_largest: bool, scope: Scope, kind: Kind) -> String {
    let size = if is_largest { "largest" } else { "small" };
    let place = match scope {
        Scope::Tenant => "tenant",
        Scope::Project => "project",
    };
    format!("{size} {place} {}", kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_says_how_it_was_missed() {
        let figure = |value, goal| Figure {
            name: "f",
            value,
            goal,
        };
        assert!(figure(0.8, Goal::AtLeast(0.8)).missed().is_none());
        assert!(figure(5.0, Goal::AtMost(5.0)).missed().is_none());
        let missed = figure(5.001, Goal::AtMost(5.0)).missed();
        assert_eq!(missed.as_deref(), Some("f 5.001, goal 5 or less"));
        assert!(figure(f64::NAN, Goal::AtLeast(0.8)).missed().is_some());
        assert!(figure(f64::NAN, Goal::AtMost(5.0)).missed().is_some());
    }
}
