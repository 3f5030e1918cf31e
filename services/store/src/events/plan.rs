//! The plan of a batch: which turn each event belongs to, which numbers it takes, which jobs it
//! leaves. Worked out from drafts and locked sessions alone, without the database.

use std::collections::{BTreeMap, HashMap, HashSet};

use cairn_domain::event::{EventBody, EventDraft};
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::kept::Kept;
use super::ledger::{kind_code, printed};
use super::projects::{OpenProject, OpenProjects};
use super::sessions::{Session, Sessions};
use super::{EventBatch, PreparedEvent};
use crate::jobs::{JobKind, NewJob};

/// What a batch will write.
pub(super) struct Plan {
    /// One for each fresh event, in order.
    pub items: Vec<Item>,
    /// The sessions that the batch changes, as it leaves them.
    pub sessions: Vec<Session>,
    /// The jobs its turns leave.
    pub jobs: Vec<NewJob>,
    projects: OpenProjects,
    /// Positions of projects that the batch makes, by their numbers.
    placed: BTreeMap<i32, i64>,
}

/// What one event will write.
pub(super) struct Item {
    event_id: Uuid,
    /// Its kind, as the ledger numbers it.
    pub kind: i16,
    series: Series,
    /// Its project.
    pub project: i32,
    folded: String,
    /// Who wrote it.
    pub author: i32,
    /// When it arrived; an imported one, where it came from.
    pub arrived_at: DateTime<Utc>,
    /// Its session.
    pub session: Option<i64>,
    /// The turn it belongs to, 0 outside of any.
    pub turn: i32,
    /// A prompt's number in its session.
    pub session_number: i32,
    /// Its number in its series, once taken.
    pub number: Option<i64>,
    /// Its position, once taken.
    pub position: Option<i64>,
    /// Bytes of the row that it leaves.
    pub bytes: i32,
}

/// Which counters an event takes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    None,
    Observation,
    Summary,
    Prompt,
    ToolUse,
    WorkEntry,
}

impl Series {
    const fn has_position(self) -> bool {
        !matches!(self, Self::None | Self::ToolUse)
    }
}

/// How many numbers a plan takes from each counter.
pub(super) struct Need {
    pub observations: i64,
    pub summaries: i64,
    pub prompts: i64,
    pub tool_uses: i64,
    pub positions: i64,
}

/// Where the tenant's counters stood before the plan took from them.
pub(super) struct Counters {
    pub observation: i64,
    pub summary: i64,
    pub prompt: i64,
    pub position: i64,
}

impl Plan {
    pub fn of(
        batch: &EventBatch<'_>,
        fresh: &[&PreparedEvent],
        projects: OpenProjects,
        mut sessions: Sessions,
    ) -> Self {
        let before = sessions.clone();
        let mut items = Vec::with_capacity(fresh.len());
        let mut jobs = Vec::new();
        for event in fresh {
            let draft = &event.draft;
            let folded = draft.project.folded();
            let project = projects.get(&folded).expect("opened just before").key;
            let session = draft
                .session
                .as_ref()
                .and_then(|key| sessions.get_mut(&(project, key.clone())));
            let mut item = Item {
                event_id: draft.event_id,
                kind: kind_code(&draft.body),
                series: series(&draft.body),
                project,
                folded,
                author: event.author(batch).key,
                arrived_at: event.arrived_at(batch),
                session: session.as_ref().map(|session| session.id),
                turn: 0,
                session_number: 0,
                number: None,
                position: None,
                bytes: 0,
            };
            match (session, &event.kept) {
                (Some(session), Some(kept)) => restore(session, draft, kept, &mut item),
                (Some(session), None) => {
                    follow(session, draft, &mut item, &mut jobs, batch.arrived_at);
                }
                (None, _) => {}
            }
            items.push(item);
        }
        sessions.retain(|at, session| before.get(at) != Some(session));
        Self {
            items,
            sessions: sessions.into_values().collect(),
            jobs,
            projects,
            placed: BTreeMap::new(),
        }
    }

    /// Says how many bytes each event leaves if it leaves a row.
    pub fn weigh(&mut self, bytes: &[i32]) {
        let leaves_row = |item: &&mut Item| item.series != Series::None;
        let weighed = self.items.iter_mut().zip(bytes);
        for (item, bytes) in weighed.filter(|(item, _)| leaves_row(item)) {
            item.bytes = *bytes;
        }
    }

    pub fn need(&self) -> Need {
        let count = |wanted: Series| {
            let taken = self.items.iter().filter(|item| item.series == wanted);
            i64::try_from(taken.count()).unwrap_or(i64::MAX)
        };
        let records = [Series::Observation, Series::Summary, Series::Prompt];
        let [observations, summaries, prompts] = records.map(count);
        let unplaced = self.projects.values().filter(|p| p.position.is_none());
        let new_projects = i64::try_from(unplaced.count()).unwrap_or(i64::MAX);
        Need {
            observations,
            summaries,
            prompts,
            tool_uses: count(Series::ToolUse),
            positions: observations + summaries + prompts + count(Series::WorkEntry) + new_projects,
        }
    }

    pub fn number_tool_uses(&mut self, mut last: i64) {
        for item in &mut self.items {
            if item.series == Series::ToolUse {
                item.number = Some(next(&mut last));
            }
        }
    }

    /// Numbers follow the order of the items; a new project stands before its first item.
    pub fn number_records(&mut self, mut last: Counters) {
        for item in &mut self.items {
            let project = self.projects.get(&item.folded);
            if project.is_some_and(|project| project.position.is_none()) {
                let position = &mut last.position;
                self.placed
                    .entry(item.project)
                    .or_insert_with(|| next(position));
            }
            item.number = match item.series {
                Series::Observation => Some(next(&mut last.observation)),
                Series::Summary => Some(next(&mut last.summary)),
                Series::Prompt => Some(next(&mut last.prompt)),
                _ => item.number,
            };
            if item.series.has_position() {
                item.position = Some(next(&mut last.position));
            }
        }
    }

    /// The id that each event's record has, by event id.
    pub fn ids(&self) -> HashMap<Uuid, Option<String>> {
        let id = |item: &Item| item.number.and_then(|number| printed(item.kind, number));
        self.items
            .iter()
            .map(|item| (item.event_id, id(item)))
            .collect()
    }

    pub fn last_position(&self) -> Option<i64> {
        let records = self.items.iter().filter_map(|item| item.position);
        records.chain(self.placed.values().copied()).max()
    }

    /// New projects and their positions.
    pub fn new_projects(&self) -> Vec<(i32, i64)> {
        self.placed.iter().map(|(id, at)| (*id, *at)).collect()
    }

    /// How many records each project gains.
    pub fn gains(&self) -> BTreeMap<i32, i64> {
        let records = [Series::Observation, Series::Summary, Series::Prompt];
        let mut gains = BTreeMap::new();
        for item in self
            .items
            .iter()
            .filter(|item| records.contains(&item.series))
        {
            *gains.entry(item.project).or_default() += 1;
        }
        gains
    }

    /// Projects whose context shows something new: prompts and tool uses change none.
    pub fn changed_projects(&self) -> Vec<&OpenProject> {
        let shown = [Series::Observation, Series::Summary, Series::WorkEntry];
        let changed: HashSet<&str> = self
            .items
            .iter()
            .filter(|item| shown.contains(&item.series))
            .map(|item| item.folded.as_str())
            .collect();
        let all = self.projects.iter();
        all.filter(|(folded, _)| changed.contains(folded.as_str()))
            .map(|(_, project)| project)
            .collect()
    }
}

fn next(last: &mut i64) -> i64 {
    *last += 1;
    *last
}

const fn series(body: &EventBody) -> Series {
    match body {
        EventBody::Observation(_) => Series::Observation,
        EventBody::Summary(_) => Series::Summary,
        EventBody::Prompt { text: Some(_) } => Series::Prompt,
        EventBody::ToolUse(_) => Series::ToolUse,
        EventBody::WorkEntry { .. } => Series::WorkEntry,
        EventBody::Prompt { text: None }
        | EventBody::SessionStart { .. }
        | EventBody::TurnEnd { .. }
        | EventBody::SessionEnd { .. } => Series::None,
    }
}

/// Counts an imported event into its session, where it was told to belong. What was over long ago
/// opens no turn and leaves no job.
fn restore(session: &mut Session, draft: &EventDraft, kept: &Kept, item: &mut Item) {
    match &draft.body {
        EventBody::Prompt { text: Some(_) } => {
            let number = kept.session_number.unwrap_or(session.prompt_count + 1);
            session.prompt_count = session.prompt_count.max(number);
            item.session_number = number;
        }
        EventBody::ToolUse(_) => {
            session.tool_use_count += 1;
            item.turn = kept.turn.unwrap_or(0);
            session.turn = session.turn.max(item.turn);
        }
        _ => {}
    }
}

/// Moves a session on by one event.
fn follow(
    session: &mut Session,
    draft: &EventDraft,
    item: &mut Item,
    jobs: &mut Vec<NewJob>,
    now: DateTime<Utc>,
) {
    match &draft.body {
        EventBody::SessionStart { source, model } => {
            session.ended_at = None;
            session.end_reason = None;
            session.source = source.clone().or(session.source.take());
            session.model = model.clone().or(session.model.take());
        }
        EventBody::Prompt { text } => {
            jobs.extend(close_turn(session, None, now));
            open_turn(session, text.is_none());
            if text.is_some() {
                session.prompt_count += 1;
                item.session_number = session.prompt_count;
            }
        }
        EventBody::ToolUse(_) => {
            if !session.turn_open {
                open_turn(session, false);
            }
            if session.turn_private {
                // The client should not have sent it: nothing of such a turn is kept.
                item.series = Series::None;
            } else {
                session.turn_tool_uses += 1;
                session.tool_use_count += 1;
            }
        }
        EventBody::TurnEnd { last_reply } => {
            if session.turn_open && !session.turn_private {
                session.last_reply.clone_from(last_reply);
            }
            jobs.extend(close_turn(session, last_reply.as_deref(), now));
        }
        EventBody::SessionEnd { reason } => {
            jobs.extend(close_turn(session, None, now));
            session.ended_at = Some(draft.at);
            session.end_reason.clone_from(reason);
            jobs.push(NewJob {
                kind: JobKind::Summarize,
                payload: json!({ "session": session.uid, "reason": reason }),
                session: Some(session.uid),
                run_after: now,
            });
        }
        EventBody::Observation(_) | EventBody::Summary(_) | EventBody::WorkEntry { .. } => {}
    }
    item.turn = session.turn;
}

fn open_turn(session: &mut Session, private: bool) {
    session.turn += 1;
    session.turn_open = true;
    session.turn_private = private;
    session.turn_tool_uses = 0;
}

/// Closes the turn under way, if any; one that used tools leaves a job for the observer.
fn close_turn(
    session: &mut Session,
    last_reply: Option<&str>,
    now: DateTime<Utc>,
) -> Option<NewJob> {
    let used = session.turn_open && session.turn_tool_uses > 0;
    session.turn_open = false;
    used.then(|| NewJob {
        kind: JobKind::Observe,
        payload: json!({
            "session": session.uid,
            "turn": session.turn,
            "last_reply": last_reply,
        }),
        session: Some(session.uid),
        run_after: now,
    })
}

impl Item {
    /// Whether it makes a tool-use row.
    pub fn is_tool_use(&self) -> bool {
        self.series == Series::ToolUse
    }
}
