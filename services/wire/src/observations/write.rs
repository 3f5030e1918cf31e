//! An observation as a person or an agent hands it over, by a route or a tool.

use cairn_domain::Rejection;
use cairn_domain::bounds::{self, Bound, Oversize};
use cairn_domain::event::{EventBody, EventDraft, Origin, SessionKey, Visibility};
use cairn_domain::limits;
use cairn_domain::observation::title_of;
use cairn_domain::project::ProjectKey;
use cairn_domain::search::input::{number, object, texts};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ObservationFields, Record};
use crate::events::{parse_time, parse_visibility};
use crate::reading::{Unreadable, whole};
use crate::session::SessionName;

/// An observation to store: its fields, or a text with or without a title.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct ObservationWrite {
    /// Its own fields.
    #[serde(flatten)]
    pub fields: ObservationFields,
    /// What stands beside them.
    #[serde(flatten)]
    pub around: ObservationAround,
}

/// Where an observation belongs and how it came about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ObservationAround {
    /// In place of `narrative`: if there is no title, its first 60 characters are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Id, key or name of a project; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `team` or `private`; as header `Cairn-Visibility` says, if absent, or `team`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// When it happened, if that was not just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The session it belongs to; header `Cairn-Session` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    /// The subagent's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The checkout's folder, the home folder as `~`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// A UUID that makes the write repeatable; header `Idempotency-Key` does too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
}

/// What a write does not say itself.
#[derive(Clone, Debug)]
pub struct Given {
    /// The event id, if the body names none.
    pub event_id: Uuid,
    /// The project that was found for it.
    pub project: ProjectKey,
    /// The caller's session.
    pub session: Option<SessionKey>,
    /// Who may read it, if the body does not say.
    pub visibility: Visibility,
    /// When it arrived.
    pub arrived_at: DateTime<Utc>,
    /// The digest of [`ObservationWrite::content`].
    pub digest: [u8; 16],
}

impl ObservationWrite {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Unreadable`], with a pointer to a value of the wrong kind.
    pub fn read(json: &str) -> Result<Self, Unreadable> {
        // Read twice rather than flattened: a flattened reading loses the pointers.
        Ok(Self {
            fields: whole(json)?,
            around: whole(json)?,
        })
    }

    /// Reads the arguments of tool `save_memory`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read, or a missing text.
    pub fn from_memory(arguments: Value) -> Result<Self, Rejection> {
        let named = ["text", "title", "type", "project", "visibility"];
        let write = Self::taken(object(arguments, &named, &["concepts"])?)?;
        let text = write.around.text.as_deref().unwrap_or_default();
        if text.trim().is_empty() {
            return Err(Rejection::invalid_input("text", "what is to be remembered"));
        }
        Ok(write)
    }

    /// Reads the arguments of tool `observation_add`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let named = [
            "text",
            "title",
            "subtitle",
            "narrative",
            "type",
            "project",
            "visibility",
        ];
        let others = [
            "facts",
            "concepts",
            "files_read",
            "files_modified",
            "work_tokens",
            "tool_uses",
        ];
        Self::taken(object(arguments, &named, &others)?)
    }

    fn taken(mut arguments: Map<String, Value>) -> Result<Self, Rejection> {
        let work_tokens = arguments.get("work_tokens");
        let work_tokens = number("work_tokens", work_tokens, 0, u32::MAX)?;
        let list = |name| Ok(texts(name, arguments.get(name))?.unwrap_or_default());
        let lists = (
            list("facts")?,
            list("concepts")?,
            list("files_read")?,
            list("files_modified")?,
            list("tool_uses")?,
        );
        let (facts, concepts, files_read, files_modified, tool_uses) = lists;
        let mut text = |name: &str| match arguments.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            fields: ObservationFields {
                kind: text("type"),
                title: text("title").unwrap_or_default(),
                subtitle: text("subtitle").unwrap_or_default(),
                narrative: text("narrative").unwrap_or_default(),
                facts,
                concepts,
                files_read,
                files_modified,
                work_tokens,
                tool_uses,
            },
            around: ObservationAround {
                text: text("text"),
                project: text("project"),
                visibility: text("visibility"),
                ..ObservationAround::default()
            },
        })
    }

    /// What makes two sendings of one event equal.
    ///
    /// # Panics
    /// Never: texts and numbers serialise.
    #[must_use]
    pub fn content(&self) -> String {
        let said = (&self.fields, &self.around.text);
        serde_json::to_string(&said).expect("texts and numbers serialise")
    }

    /// What produces the record: a text is somebody's own words.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        match self.around.text {
            Some(_) => Origin::Manual,
            None => Origin::Api,
        }
    }

    /// Checks everything against its limit and makes an event of it.
    ///
    /// # Errors
    /// `invalid_field` naming the field and what is allowed; `empty_record`.
    pub fn parse(self, given: Given) -> Result<EventDraft, Rejection> {
        let Self { mut fields, around } = self;
        if let Some(text) = around.text {
            if !fields.narrative.is_empty() {
                return Err(Rejection::invalid_field("/text", "not beside narrative"));
            }
            // First what must never be kept goes: no title may be made of it.
            let bound = Bound::Bytes(limits::TEXT_BYTES);
            fields.narrative = bounds::text("/text", text, bound, Oversize::Refuse)?;
            if fields.title.trim().is_empty() {
                fields.title = title_of(&fields.narrative);
            }
        }
        let at = around.at.map(|at| parse_time("/at", at)).transpose()?;
        let session = around.session.map(SessionName::parse).transpose()?;
        let word = |pointer, value| bounds::optional_word(pointer, value, limits::WORD_BYTES);
        let checkout = around.checkout.filter(|folder| !folder.trim().is_empty());
        let checkout = checkout.map(|folder| bounds::path("/checkout", folder, Oversize::Refuse));
        let visibility = around.visibility.as_deref();
        let visibility = visibility.map(parse_visibility);
        Ok(EventDraft {
            event_id: around.event_id.unwrap_or(given.event_id),
            at: at.unwrap_or(given.arrived_at).min(given.arrived_at),
            project: given.project,
            session: session.or(given.session),
            agent_id: word("/agent_id", around.agent_id)?,
            agent_type: word("/agent_type", around.agent_type)?,
            branch: word("/branch", around.branch)?,
            checkout: checkout.transpose()?,
            visibility: visibility.transpose()?.unwrap_or(given.visibility),
            digest: given.digest,
            body: EventBody::Observation(fields.parse(Oversize::Refuse)?),
        })
    }
}

/// A record that a call has stored, or had stored before.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordWritten {
    /// The record as it stands.
    #[serde(flatten)]
    pub record: Record,
    /// Whether the event id was stored before with other content; it changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub event_id_reused: bool,
}

/// A change of a record, by `PATCH`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RecordPatch {
    /// `team`: everyone may read it from now on. There is no way back.
    pub visibility: Option<String>,
}

impl RecordPatch {
    /// The visibility that is wanted.
    ///
    /// # Errors
    /// `invalid_field` if it is none.
    pub fn parse(&self) -> Result<Visibility, Rejection> {
        let named = self.visibility.as_deref().map(str::trim);
        let refuse = || Rejection::invalid_field("/visibility", "team");
        parse_visibility(named.ok_or_else(refuse)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given() -> Given {
        Given {
            event_id: Uuid::nil(),
            project: ProjectKey::parse("name:a".to_owned(), None).expect("a key"),
            session: None,
            visibility: Visibility::Team,
            arrived_at: DateTime::UNIX_EPOCH,
            digest: [0; 16],
        }
    }

    fn parsed(body: Value) -> Result<EventDraft, Rejection> {
        let write = ObservationWrite::read(&body.to_string()).expect("reads");
        write.parse(given())
    }

    fn title(body: Value) -> String {
        match parsed(body).expect("whole").body {
            EventBody::Observation(observation) => observation.title,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_text_alone_has_its_head_for_a_title() {
        assert_eq!(title(json!({"text": "short\n words"})), "short words");
        let long = "修复".repeat(40);
        let wanted = format!("{}...", "修复".repeat(30));
        assert_eq!(title(json!({ "text": long })), wanted);
        assert_eq!(title(json!({"text": long, "title": "own"})), "own");
    }

    #[test]
    fn what_is_private_in_a_text_reaches_no_title() {
        let text = "<private>the password</private> Deploys run at noon";
        assert_eq!(title(json!({ "text": text })), "Deploys run at noon");
        let empty = parsed(json!({"text": "<private>all</private>"}));
        assert!(matches!(empty, Err(Rejection::EmptyRecord(_))), "{empty:?}");
    }

    #[test]
    fn what_is_out_of_bounds_is_pointed_at() {
        for (body, pointer) in [
            (json!({"title": "x".repeat(401)}), "/title"),
            (json!({"text": "x".repeat(70_000)}), "/text"),
            (json!({"text": "x", "narrative": "y"}), "/text"),
            (json!({"title": "x", "type": "poem"}), "/type"),
            (json!({"title": "x", "concepts": ["poem"]}), "/concepts/0"),
            (json!({"title": "x", "visibility": "all"}), "/visibility"),
            (json!({"title": "x", "at": "1969-01-01T00:00:00Z"}), "/at"),
        ] {
            match parsed(body.clone()) {
                Err(Rejection::InvalidField { pointer: at, .. }) => assert_eq!(at, pointer),
                other => panic!("{body}: {other:?}"),
            }
        }
        let wrong = ObservationWrite::read(r#"{"title":"x","facts":["a",1]}"#);
        let Err(Unreadable::Field(Rejection::InvalidField { pointer, .. })) = wrong else {
            panic!("{wrong:?}")
        };
        assert_eq!(pointer, "/facts/1");
    }

    #[test]
    fn arguments_may_come_as_text() {
        let arguments = json!({"title": "x", "facts": "[\"a\", \"b\"]", "concepts": "gotcha",
            "tool_uses": [118, "T121"], "work_tokens": "7"});
        let write = ObservationWrite::from_arguments(arguments).expect("read");
        assert_eq!(write.fields.facts, ["a", "b"]);
        assert_eq!(write.fields.concepts, ["gotcha"]);
        assert_eq!(write.fields.tool_uses, ["118", "T121"]);
        assert_eq!(write.fields.work_tokens, Some(7));
        for (arguments, name) in [
            (json!({"facts": "[41"}), "facts"),
            (json!({"title": 5}), "title"),
            (json!({"colour": "red"}), "colour"),
        ] {
            match ObservationWrite::from_arguments(arguments) {
                Err(Rejection::InvalidInput { argument, .. }) => assert_eq!(argument, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        for arguments in [json!({}), json!({"text": " "}), json!({"title": "x"})] {
            let refused = ObservationWrite::from_memory(arguments).expect_err("no text");
            assert_eq!(refused.to_string(), "text: what is to be remembered.");
        }
    }
}
