//! The state machine: which call may follow which, and the order in which a call is checked
//! (contract 7.2). Checks that need rows or the store are not here.

use chrono::{DateTime, Utc};

use super::input::{Input, ids, number, query};
use super::{Cursor, Options, Shown, Step, Stored};
use crate::Rejection;
use crate::ids::{RecordId, RecordKind};
use crate::limits;

/// A call whose shape is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Step 1.
    Start(Options),
    /// All steps at once.
    Auto(Options),
    /// Step 2 or 3; which of them, the state tells.
    Continue(Continue),
}

/// A continued call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// Names the state to continue.
    pub cursor: Cursor,
    /// The chosen ids, without repeats, if any were sent.
    pub selected: Option<Vec<RecordId>>,
    /// Conditions sent again.
    pub conditions: Conditions,
}

/// The conditions of a search as far as a call names them, after normalisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The query, trimmed.
    pub query: Option<String>,
    /// The project, trimmed.
    pub project: Option<String>,
    /// Rows of the index.
    pub limit: Option<u32>,
    /// Anchors and details.
    pub max_details: Option<u32>,
    /// Neighbours before an anchor.
    pub depth_before: Option<u32>,
    /// Neighbours after an anchor.
    pub depth_after: Option<u32>,
}

/// What a continued call leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Step 2.
    Timeline {
        /// The chosen rows, in the order given.
        anchors: Vec<Shown>,
        /// Neighbours before each.
        before: u32,
        /// Neighbours after each.
        after: u32,
    },
    /// Step 3.
    Details {
        /// The chosen rows, in the order given.
        records: Vec<Shown>,
    },
    /// The caller has enough.
    Stop,
}

impl Call {
    /// Checks 1 and 2: the shape of the arguments, then of the cursor.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that breaks its rule; `invalid_continuation` if
    /// what stands for a cursor is none.
    pub fn parse(input: &Input) -> Result<Self, Rejection> {
        let auto = is_auto(input.mode.as_deref())?;
        let conditions = Conditions::parse(input)?;
        let selected = ids("selectedIds", input.selected_ids.as_ref())?;
        match &input.continuation {
            Some(_) if auto => Err(Rejection::invalid_input(
                "mode",
                "guided with a continuation",
            )),
            Some(cursor) => Ok(Self::Continue(Continue {
                cursor: cursor.parse()?,
                selected,
                conditions,
            })),
            None if selected.is_some() => Err(Rejection::invalid_input(
                "selectedIds",
                "only with a continuation",
            )),
            None if auto => conditions.complete().map(Self::Auto),
            None => conditions.complete().map(Self::Start),
        }
    }
}

impl Conditions {
    fn parse(input: &Input) -> Result<Self, Rejection> {
        let depth = |argument, value| number(argument, value, 0, limits::MAX_DEPTH);
        Ok(Self {
            query: input.query.as_deref().map(query).transpose()?,
            project: project(input.project.as_deref())?,
            limit: number("limit", input.limit.as_ref(), 1, limits::INDEX_ROWS)?,
            max_details: number(
                "maxDetails",
                input.max_details.as_ref(),
                1,
                limits::MAX_DETAILS,
            )?,
            depth_before: depth("depthBefore", input.depth_before.as_ref())?,
            depth_after: depth("depthAfter", input.depth_after.as_ref())?,
        })
    }

    fn complete(self) -> Result<Options, Rejection> {
        Ok(Options {
            query: self.query.map_or_else(|| query(""), Ok)?,
            project: self.project,
            named: None,
            limit: self.limit.unwrap_or(limits::INDEX_ROWS),
            max_details: self.max_details.unwrap_or(limits::DEFAULT_DETAILS),
            depth_before: self.depth_before.unwrap_or(limits::DEFAULT_DEPTH),
            depth_after: self.depth_after.unwrap_or(limits::DEFAULT_DEPTH),
        })
    }

    /// The first condition, in the order of the contract, that differs from the search's.
    fn differs(&self, options: &Options) -> Option<&'static str> {
        let number = |sent: Option<u32>, kept| sent.is_some_and(|sent| sent != kept);
        let query = self
            .query
            .as_ref()
            .is_some_and(|sent| *sent != options.query);
        let project = self
            .project
            .as_ref()
            .is_some_and(|sent| !options.is_project(sent));
        [
            ("query", query),
            ("project", project),
            ("limit", number(self.limit, options.limit)),
            ("maxDetails", number(self.max_details, options.max_details)),
            (
                "depthBefore",
                number(self.depth_before, options.depth_before),
            ),
            ("depthAfter", number(self.depth_after, options.depth_after)),
        ]
        .into_iter()
        .find_map(|(argument, differs)| differs.then_some(argument))
    }
}

impl Stored {
    /// Checks 3 to 6 of a continued call, in order: scope and age, conditions, number of ids,
    /// disclosure.
    ///
    /// # Errors
    /// `invalid_continuation`, `expired_continuation`, `scope_changed`, `selection_required` or
    /// `invalid_selection`: the first check that fails.
    pub fn advance(
        &self,
        call: &Continue,
        scope: &str,
        now: DateTime<Utc>,
    ) -> Result<Plan, Rejection> {
        if self.scope != scope {
            return Err(Rejection::InvalidContinuation);
        }
        if now >= self.expires_at {
            return Err(Rejection::ExpiredContinuation);
        }
        if let Some(argument) = call.conditions.differs(&self.options) {
            return Err(Rejection::ScopeChanged { argument });
        }
        let max = self.options.max_details;
        let selected = match call.selected.as_deref() {
            Some([]) => return Ok(Plan::Stop),
            Some(selected) if selected.len() <= max as usize => selected,
            _ => return Err(Rejection::SelectionRequired { max }),
        };
        let chosen: Result<_, _> = selected.iter().map(|id| self.choose(*id)).collect();
        chosen.map(|chosen| self.plan(chosen))
    }

    fn choose(&self, id: RecordId) -> Result<Shown, Rejection> {
        let Some(shown) = self.shown.iter().find(|shown| shown.id == id) else {
            return Err(Rejection::NotDisclosed { id: id.to_string() });
        };
        if self.step == Step::Details && id.kind == RecordKind::Prompt {
            return Err(Rejection::ContextOnly { id: id.to_string() });
        }
        Ok(*shown)
    }

    fn plan(&self, chosen: Vec<Shown>) -> Plan {
        match self.step {
            Step::Details => Plan::Details { records: chosen },
            _ => Plan::Timeline {
                anchors: chosen,
                before: self.options.depth_before,
                after: self.options.depth_after,
            },
        }
    }
}

fn is_auto(mode: Option<&str>) -> Result<bool, Rejection> {
    match mode {
        None | Some("guided") => Ok(false),
        Some("auto") => Ok(true),
        Some(_) => Err(Rejection::invalid_input("mode", "guided or auto")),
    }
}

/// An empty project is none.
fn project(text: Option<&str>) -> Result<Option<String>, Rejection> {
    let text = text.unwrap_or_default().trim();
    if text.len() > limits::PROJECT_BYTES {
        return Err(Rejection::invalid_input("project", "at most 256 bytes"));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
