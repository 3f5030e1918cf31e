//! The budget of a session start: everything that is printed together stays within the host's
//! limit, by measuring and dropping whole blocks in a fixed order (contract 6.5, 6.6).

use super::render::{Plan, render_plan};
use super::{ContextRows, Options, Zone};
use crate::limits;
use crate::room::{Room, Size};
use crate::template::Template;

/// How much may be printed at session start, and what others will add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// The host's limit for everything together.
    pub limit: Room,
    /// Units that the client adds: wrapper, notices, the lines between.
    pub reserve: usize,
}

impl Budget {
    /// Room for work state: what of the parts' share the others leave, but never less than it
    /// needs to be of use.
    #[must_use]
    pub fn work_state(&self) -> Room {
        let share = self.limit.share(limits::CONTEXT_SHARE);
        let left = share.less(self.taken());
        Room {
            units: left.units.max(limits::LEAST_WORK_UNITS),
            tokens: left.tokens.max(limits::LEAST_WORK_UNITS / 4),
        }
    }

    /// Room for the index beside a work state of this size: all that is left.
    #[must_use]
    pub fn index(&self, work_state: Size) -> Room {
        self.limit.less(self.taken() + work_state)
    }

    /// What the client adds, and the blank line between work state and index.
    fn taken(&self) -> Size {
        let reserved = Size::ascii(self.reserve);
        reserved + Size::of("\n\n")
    }
}

/// The index of a project within its room. While it is too long the dearest block goes whole:
/// rows in full, the last summary's fields, the last reply, half of the sessions until none is
/// left, half of the observations until one is left. Then the newest observations that do fit
/// come back, so that halving costs no more than it must.
#[must_use]
pub fn render_index(
    project: &str,
    rows: &ContextRows,
    options: Options,
    zone: Zone,
    room: Room,
) -> Template {
    let render = |plan| render_plan(project, rows, options, zone, plan);
    let mut plan = Plan::all(rows);
    let mut index = render(plan);
    let mut too_many = plan.observations + 1;
    while !room.holds(index.size()) {
        let before = plan;
        plan = less(plan, options, rows);
        if plan == before {
            return index;
        }
        if plan.observations < before.observations {
            too_many = before.observations;
        }
        index = render(plan);
    }
    while plan.observations + 1 < too_many {
        let more = Plan {
            observations: plan.observations.midpoint(too_many),
            ..plan
        };
        let longer = render(more);
        if room.holds(longer.size()) {
            (plan, index) = (more, longer);
        } else {
            too_many = more.observations;
        }
    }
    index
}

/// The plan without its dearest block; the same if only what always stays is left.
fn less(plan: Plan, options: Options, rows: &ContextRows) -> Plan {
    if plan.full && options.full_count > 0 {
        Plan {
            full: false,
            ..plan
        }
    } else if plan.last_summary && options.show_last_summary {
        Plan {
            last_summary: false,
            ..plan
        }
    } else if plan.last_reply && rows.last_reply.is_some() {
        Plan {
            last_reply: false,
            ..plan
        }
    } else if plan.summaries > 0 {
        Plan {
            summaries: plan.summaries / 2,
            ..plan
        }
    } else {
        Plan {
            observations: (plan.observations / 2).max(plan.observations.min(1)),
            ..plan
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
