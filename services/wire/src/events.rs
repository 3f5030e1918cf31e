//! Events: what a client sends about what agents do, and what became of each (contract 4.1).
//!
//! A batch is read item by item, so that one bad item never holds up the others: items stand here
//! as raw JSON until [`Item::parse`].

use cairn_domain::Rejection;
use cairn_domain::bounds::{self, Bound, Oversize};
use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::hlc::Hlc;
use cairn_domain::json_text::mend_escapes;
use cairn_domain::limits;
use cairn_domain::project::ProjectKey;
use cairn_domain::redact::{safe, safe_json};
use cairn_domain::tool_use::{Evidence, ToolUseDraft};
use cairn_domain::work_state::WorkEntryDraft;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::observations::{ObservationFields, SummaryFields};
use crate::reading::{Reader, Unreadable};
use crate::session::SessionName;

/// A request: some events of one client.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Batch {
    /// When the request was sent, by the client's clock.
    pub sent_at: Option<DateTime<Utc>>,
    /// The project of the items that name none.
    pub project: Option<ProjectName>,
    /// The client's machine, which orders work entries made on it.
    pub machine: Option<String>,
    /// At most 500 items.
    #[schema(value_type = Vec<Item>)]
    pub items: Vec<Box<RawValue>>,
}

/// A project as a client names it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProjectName {
    /// `git:…`, `name:…`, `repo:…` or `dir:…`.
    pub key: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One event.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Item {
    /// A UUID that the client made; unique in the tenant for ever.
    pub event_id: Uuid,
    /// `session_start`, `prompt`, `tool_use`, `turn_end`, `session_end`, `observation`, `summary`
    /// or `work_entry`.
    pub kind: String,
    /// When it happened; the time of arrival if absent.
    pub at: Option<DateTime<Utc>>,
    /// Its project, if not the batch's.
    pub project: Option<ProjectName>,
    /// Its session; required for what a host reports.
    pub session: Option<SessionName>,
    /// The highest moment of work entries that the client had seen, `<ms>.<counter>`.
    pub after: Option<String>,
    /// The subagent's id.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The checkout's folder, the home folder as `~`.
    pub checkout: Option<String>,
    /// `team` or `private`; as header `Cairn-Visibility` says, if absent, or `team`.
    pub visibility: Option<String>,
    /// What the kind needs.
    #[schema(value_type = Object)]
    pub body: Option<Box<RawValue>>,
}

/// What the batch around an item says about it.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// When the request arrived.
    pub arrived_at: DateTime<Utc>,
    /// When it was sent, by the client's clock.
    pub sent_at: DateTime<Utc>,
    /// The batch's project.
    pub project: Option<&'a ProjectName>,
    /// The client's machine.
    pub machine: Option<&'a str>,
    /// Who may read what an item leaves that does not say.
    pub visibility: Visibility,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionStart {
    source: Option<String>,
    model: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prompt {
    text: Option<String>,
    private: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolUse {
    tool: String,
    host_tool_use_id: Option<String>,
    input: String,
    output: String,
    failed: Option<bool>,
    files: Vec<String>,
    input_bytes: Option<i64>,
    output_bytes: Option<i64>,
    input_sha256: Option<String>,
    output_sha256: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TurnEnd {
    last_reply: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionEnd {
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkEntry {
    list: String,
    fields: serde_json::Map<String, serde_json::Value>,
    action: Option<String>,
}

impl Item {
    /// Reads one item of a batch.
    ///
    /// # Errors
    /// `invalid_field` with the pointer of the field at fault.
    pub fn read(json: &str, reader: &mut Reader) -> Result<Self, Rejection> {
        part(reader, json, "items", "")
    }

    /// Checks the item and brings its texts within their limits.
    ///
    /// # Errors
    /// The item's refusal, its pointers relative to the item.
    pub fn parse(
        self,
        around: Surroundings<'_>,
        digest: [u8; 16],
        reader: &mut Reader,
    ) -> Result<EventDraft, Rejection> {
        let made_at = self
            .at
            .map_or(Ok(around.arrived_at), |at| parse_time("/at", at))?;
        let json = self.body.as_deref().map_or("{}", RawValue::get);
        let body = match self.kind.as_str() {
            "work_entry" => {
                let entry = body(reader, json)?;
                let around = Surroundings {
                    // What names no time was made when it arrived, by the service's clock.
                    sent_at: self.at.map_or(around.arrived_at, |_| around.sent_at),
                    ..around
                };
                parse_work_entry(entry, self.after.as_deref(), made_at, around)?
            }
            kind => parse_body(kind, json, reader)?,
        };
        let project = self.project.as_ref().or(around.project);
        let project = project.ok_or(Rejection::ProjectRequired)?.clone();
        let project =
            ProjectKey::parse(project.key, project.name).map_err(|r| r.under("/project"))?;
        let session = self.session.map(SessionName::parse).transpose()?;
        if session.is_none() && needs_session(&body) {
            return Err(Rejection::invalid_field(
                "/session",
                "required for this kind",
            ));
        }
        let word = |pointer, value| bounds::optional_word(pointer, value, limits::WORD_BYTES);
        let checkout = self
            .checkout
            .map(|c| bounds::path("/checkout", c, Oversize::Cut));
        Ok(EventDraft {
            event_id: self.event_id,
            at: made_at.min(around.arrived_at),
            project,
            session,
            agent_id: word("/agent_id", self.agent_id)?,
            agent_type: word("/agent_type", self.agent_type)?,
            branch: word("/branch", self.branch)?,
            checkout: checkout.transpose()?,
            visibility: match self.visibility.as_deref() {
                Some(name) => parse_visibility(name)?,
                None => around.visibility,
            },
            digest,
            body,
        })
    }
}

/// The visibility that a body names.
///
/// # Errors
/// `invalid_field` for any other word.
pub fn parse_visibility(name: &str) -> Result<Visibility, Rejection> {
    let refuse = || Rejection::invalid_field("/visibility", "team or private");
    Visibility::from_name(name).ok_or_else(refuse)
}

fn body<T: DeserializeOwned>(reader: &mut Reader, json: &str) -> Result<T, Rejection> {
    part(reader, json, "items.body", "/body")
}

fn part<T: DeserializeOwned>(
    reader: &mut Reader,
    json: &str,
    place: &str,
    pointer: &str,
) -> Result<T, Rejection> {
    reader
        .read(json, place)
        .map_err(|unreadable| match unreadable {
            Unreadable::Field(rejection) => rejection.under(pointer),
            // The batch was JSON, so what is wrong is a value nested too deep for a field.
            Unreadable::Malformed(_) => Rejection::invalid_field(pointer, "nested too deep"),
        })
}

/// A moment within what the service can keep; a clock that was never set shows 1970.
pub(crate) fn parse_time(pointer: &str, at: DateTime<Utc>) -> Result<DateTime<Utc>, Rejection> {
    if at.timestamp() < 0 {
        return Err(Rejection::invalid_field(pointer, "not before 1970"));
    }
    Ok(at)
}

const fn needs_session(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::Observation(_) | EventBody::Summary(_) | EventBody::WorkEntry { .. }
    )
}

fn parse_body(kind: &str, json: &str, reader: &mut Reader) -> Result<EventBody, Rejection> {
    let word = |pointer, value| bounds::optional_word(pointer, value, limits::WORD_BYTES);
    match kind {
        "session_start" => {
            let body: SessionStart = body(reader, json)?;
            let source = word("/body/source", body.source)?;
            Ok(EventBody::SessionStart {
                source,
                model: word("/body/model", body.model)?,
            })
        }
        "prompt" => parse_prompt(body(reader, json)?),
        "tool_use" => parse_tool_use(body(reader, json)?),
        "turn_end" => {
            let body: TurnEnd = body(reader, json)?;
            let last_reply = body
                .last_reply
                .map(|text| cut_text("/body/last_reply", text));
            Ok(EventBody::TurnEnd {
                last_reply: last_reply.transpose()?,
            })
        }
        "session_end" => {
            let body: SessionEnd = body(reader, json)?;
            Ok(EventBody::SessionEnd {
                reason: word("/body/reason", body.reason)?,
            })
        }
        "observation" => {
            let body: ObservationFields = body(reader, json)?;
            Ok(EventBody::Observation(
                body.parse(Oversize::Cut).map_err(|r| r.under("/body"))?,
            ))
        }
        "summary" => {
            let body: SummaryFields = body(reader, json)?;
            Ok(EventBody::Summary(
                body.parse(Oversize::Cut).map_err(|r| r.under("/body"))?,
            ))
        }
        other => Err(Rejection::UnsupportedKind(
            bounds::head_bytes(&safe(other), 64).to_owned(),
        )),
    }
}

fn parse_prompt(body: Prompt) -> Result<EventBody, Rejection> {
    let bound = Bound::Bytes(limits::PROMPT_BYTES);
    let text = body.text.filter(|_| !body.private);
    let text = text.map(|text| bounds::text("/body/text", text, bound, Oversize::Cut));
    // What is empty without its private passages was wholly private.
    let text = text.transpose()?.filter(|text| !text.trim().is_empty());
    Ok(EventBody::Prompt { text })
}

fn parse_tool_use(body: ToolUse) -> Result<EventBody, Rejection> {
    Ok(EventBody::ToolUse(ToolUseDraft {
        tool: bounds::word("/body/tool", body.tool, limits::WORD_BYTES)?,
        host_tool_use_id: bounds::optional_word(
            "/body/host_tool_use_id",
            body.host_tool_use_id,
            limits::HOST_ID_BYTES,
        )?,
        input: evidence(body.input, body.input_bytes, body.input_sha256.as_deref()),
        output: evidence(
            body.output,
            body.output_bytes,
            body.output_sha256.as_deref(),
        ),
        failed: body.failed,
        files: bounds::paths("/body/files", body.files, Oversize::Cut)?.0,
    }))
}

/// One side of a tool call; a client that cut it says how long it was and its digest then.
fn evidence(text: String, bytes: Option<i64>, sha256: Option<&str>) -> Evidence {
    let kept = Evidence::of(&bounds::clean(safe_json(&mend_escapes(&text)).into_owned()));
    match (bytes, sha256.and_then(parse_digest)) {
        (Some(bytes), Some(sha256)) => kept.cut_from(bytes, sha256),
        _ => kept,
    }
}

fn parse_digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if pairs.len() != digest.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn parse_work_entry(
    body: WorkEntry,
    after: Option<&str>,
    made_at: DateTime<Utc>,
    around: Surroundings<'_>,
) -> Result<EventBody, Rejection> {
    if body.action.is_some() {
        let detail = "absent: a spooled entry makes and moves no claim";
        return Err(Rejection::invalid_field("/body/action", detail));
    }
    let after = after.map(|text| {
        text.parse::<Hlc>()
            .map_err(|e| Rejection::invalid_field("/after", e.to_string()))
    });
    let entry = WorkEntryDraft::parse(&body.list, body.fields, after.transpose()?)
        .map_err(|r| r.under("/body"))?;
    let machine = around.machine.map(str::to_owned);
    Ok(EventBody::WorkEntry {
        entry,
        made_at,
        sent_at: around.sent_at,
        machine: bounds::optional_word("/machine", machine, limits::WORD_BYTES)?,
    })
}

fn cut_text(pointer: &str, text: String) -> Result<String, Rejection> {
    bounds::text(
        pointer,
        text,
        Bound::Bytes(limits::TEXT_BYTES),
        Oversize::Cut,
    )
}

/// What became of a batch, in request order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// One outcome an item.
    pub items: Vec<ItemAnswer>,
    /// The last position that was taken; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// The highest moment of the work entries that were stored, `<ms>.<counter>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hlc: Option<String>,
    /// Fields that this version does not know, each named once. They were not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ItemAnswer {
    /// The item's event id as it was sent; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The outcome.
    pub status: ItemStatus,
    /// The record's id: the original one for a duplicate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether a duplicate's content differs from what is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub event_id_reused: bool,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<crate::Code>,
    /// The field at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether sending the same item again may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
}

/// The outcome of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Committed now.
    Stored,
    /// Committed before.
    Duplicate,
    /// Committed before and deleted since; it stays deleted.
    Deleted,
    /// Not stored.
    Refused,
    /// In an answer of `check` alone: no event of the caller has this id.
    Unknown,
}

/// Asks what became of events.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// At most 1,000 event ids.
    pub event_ids: Vec<Uuid>,
}

/// What became of each, in request order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckAnswer {
    /// One outcome an id: `stored`, `deleted` or `unknown`.
    pub items: Vec<CheckedItem>,
}

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckedItem {
    /// The event id.
    pub event_id: Uuid,
    /// `stored`, `deleted` or `unknown`.
    pub status: ItemStatus,
    /// The record's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
