//! Tool uses: what is asked for by id, and the original input and output as read back (contract 8).

use cairn_domain::hex::hex;
use cairn_domain::search::input::{list, number, object};
use cairn_domain::tool_use::{Alteration, ToolUse as StoredToolUse, ToolUseName};
use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The arguments of tool `get_tool_uses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUseQuery {
    /// The tool uses meant, 1 to 20.
    pub names: Vec<ToolUseName>,
    /// Id, key or name of a project that confines the answer.
    pub project: Option<String>,
    /// Which part of the one call that is meant, from 1.
    pub part: Option<u32>,
}

impl ToolUseQuery {
    /// Reads the arguments of the tool.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let arguments = object(arguments, &["project"], &["ids", "part"])?;
        let allowed = format!("1 to {} ids such as T118", limits::TOOL_USE_IDS);
        let names = list("ids", arguments.get("ids"), &allowed, ToolUseName::read)?;
        let names = names.unwrap_or_default();
        if names.is_empty() || names.len() > limits::TOOL_USE_IDS {
            return Err(Rejection::invalid_input("ids", &allowed));
        }
        let part = number("part", arguments.get("part"), 1, u32::MAX)?;
        if part.is_some() && names.len() != 1 {
            return Err(Rejection::invalid_input("part", "only with one id"));
        }
        let project = arguments.get("project").and_then(Value::as_str);
        Ok(Self {
            names,
            project: project.map(str::to_owned),
            part,
        })
    }
}

/// Asks for several tool uses.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ToolUseBatch {
    /// At most 100 of `T118`, `118`, or a host's id of a call.
    pub ids: Vec<String>,
    /// Id, key or name of a project that confines the answer.
    #[serde(default)]
    pub project: Option<String>,
}

impl ToolUseBatch {
    /// The names, repeats collapsed.
    ///
    /// # Errors
    /// `invalid_field` for none, for more than 100, or for what names nothing.
    pub fn parse(&self) -> Result<Vec<ToolUseName>, Rejection> {
        if self.ids.is_empty() || self.ids.len() > limits::READ_IDS {
            let detail = format!("1 to {} ids", limits::READ_IDS);
            return Err(Rejection::invalid_field("/ids", detail));
        }
        let mut names = Vec::with_capacity(self.ids.len());
        for (index, text) in self.ids.iter().enumerate() {
            let name = text.parse().map_err(|_| {
                let detail = "an id like T118, or a host's id of a call";
                Rejection::invalid_field(format!("/ids/{index}"), detail)
            })?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Several tool uses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolUseBatchAnswer {
    /// Those the caller may read, in the order asked; a host's id may name several, newest first.
    pub items: Vec<ToolUse>,
    /// The ids of which nothing was found.
    pub missing: Vec<String>,
}

/// A tool use as it is read back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolUse {
    /// `T118`.
    pub id: String,
    /// The client's id of the event that reported it.
    pub event_id: Uuid,
    /// The project's key.
    pub project: String,
    /// The project's display name.
    pub project_name: String,
    /// The host's id of its session.
    pub session: String,
    /// The host, e.g. `claude-code`.
    pub host: String,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// When it arrived.
    #[serde(serialize_with = "crate::time::millis")]
    pub arrived_at: DateTime<Utc>,
    /// `team` or `private`.
    pub visibility: String,
    /// The subagent's id, if one made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The subagent's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The checkout's folder, the home folder as `~`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
    /// The tool's name as the host gives it.
    pub tool: String,
    /// The host's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_tool_use_id: Option<String>,
    /// What went in: the exact JSON text as it was stored, at most 64 KiB.
    pub input: String,
    /// What came out, in the same way.
    pub output: String,
    /// Whether the call failed; absent if the host did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
    /// Files the call touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Bytes of the input before it was cut.
    pub input_bytes: i64,
    /// Bytes of the output before it was cut.
    pub output_bytes: i64,
    /// SHA-256 of the input before it was cut, in hexadecimal digits.
    pub input_sha256: String,
    /// SHA-256 of the output before it was cut, in hexadecimal digits.
    pub output_sha256: String,
    /// The id of the observation that was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<String>,
    /// What was done to input or output before they were stored: `redacted`, `cut`, `blob`.
    pub altered: Vec<String>,
}

impl From<StoredToolUse> for ToolUse {
    fn from(stored: StoredToolUse) -> Self {
        let altered = stored.call.alterations().into_iter();
        let altered = altered.map(Alteration::name).map(str::to_owned).collect();
        let call = stored.call;
        Self {
            id: stored.id.to_string(),
            event_id: stored.event_id,
            project: stored.project.key,
            project_name: stored.project.name,
            session: stored.session,
            host: stored.host,
            author: stored.author,
            at: stored.at,
            arrived_at: stored.arrived_at,
            visibility: stored.visibility.name().to_owned(),
            agent_id: stored.agent_id,
            agent_type: stored.agent_type,
            branch: stored.branch,
            checkout: stored.checkout,
            tool: call.tool,
            host_tool_use_id: call.host_tool_use_id,
            input_bytes: call.input.bytes,
            output_bytes: call.output.bytes,
            input_sha256: hex(&call.input.sha256),
            output_sha256: hex(&call.output.sha256),
            input: call.input.text,
            output: call.output.text,
            failed: call.failed,
            files: call.files,
            observation: stored.observation.map(|id| id.to_string()),
            altered,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: Value) -> Result<ToolUseQuery, String> {
        ToolUseQuery::from_arguments(arguments).map_err(|refused| refused.to_string())
    }

    #[test]
    fn c050_ids_may_come_as_text_or_alone() {
        for (ids, names) in [
            (json!(["T118", 118, "toolu_1"]), "T118 118 toolu_1"),
            (json!("[\"T118\", 121]"), "T118 121"),
            (json!("T118"), "T118"),
            (json!(118), "118"),
            (json!(["T118", "#118", "t118"]), "T118"),
        ] {
            let query = read(json!({"ids": ids})).expect("read");
            let printed: Vec<String> = query.names.iter().map(ToString::to_string).collect();
            assert_eq!(printed.join(" "), names);
        }
    }

    #[test]
    fn c050_no_list_of_ids_is_empty_or_long_by_accident() {
        let long: Vec<u32> = (1..=21).collect();
        for ids in [
            json!(null),
            json!([]),
            json!("[]"),
            json!(""),
            json!("[T118"),
            json!([1.5]),
            json!([["T1"]]),
            json!(long),
        ] {
            let says = "ids: 1 to 20 ids such as T118.";
            assert_eq!(read(json!({"ids": ids})), Err(says.to_owned()), "{ids}");
        }
    }

    #[test]
    fn c050_other_arguments_are_refused_by_name() {
        for (arguments, says) in [
            (
                json!({"ids": ["T1"], "part": 0}),
                "part: a whole number from 1 to 4294967295.",
            ),
            (
                json!({"ids": ["T1", "T2"], "part": 1}),
                "part: only with one id.",
            ),
            (json!({"ids": ["T1"], "project": 7}), "project: a text."),
            (
                json!({"ids": ["T1"], "tenant": "x"}),
                "tenant: no argument of this tool.",
            ),
            (json!(["T1"]), "arguments: an object."),
        ] {
            assert_eq!(read(arguments), Err(says.to_owned()));
        }
    }

    #[test]
    fn a_part_and_a_project_are_read() {
        let query = read(json!({"ids": "T1", "part": "2", "project": "my-app"})).expect("read");
        assert_eq!(
            (query.part, query.project.as_deref()),
            (Some(2), Some("my-app"))
        );
    }

    #[test]
    fn a_batch_names_the_id_at_fault() {
        let batch = |ids: &[&str]| ToolUseBatch {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            project: None,
        };
        assert_eq!(batch(&["T1", "#1", "x"]).parse().expect("names").len(), 2);
        let refused = batch(&["T1", " "]).parse().expect_err("refused");
        let detail = "an id like T118, or a host's id of a call";
        assert_eq!(refused, Rejection::invalid_field("/ids/1", detail));
        for count in [0, 101] {
            batch(&vec!["x"; count]).parse().expect_err("refused");
        }
    }
}
