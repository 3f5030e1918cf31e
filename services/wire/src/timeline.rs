//! Timeline: what is asked about a record's neighbours in time, and what is answered.

use cairn_domain::context::Zone;
use cairn_domain::ids::RecordId;
use cairn_domain::search::input::{ids, number, object, query};
use cairn_domain::timeline::TimelineRow;
use cairn_domain::{Rejection, limits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::query::Pairs;

/// The question of `GET /v1/timeline`, as it is documented. It is read by [`TimelineAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct TimelineQuery {
    /// The record in its middle: `41`, `S7` or `P3`.
    anchor: Option<String>,
    /// In place of an anchor: the best match of these words is.
    query: Option<String>,
    /// Rows before it: 0 to 50, 3 by default.
    depth_before: Option<u32>,
    /// Rows after it: 0 to 50, 3 by default.
    depth_after: Option<u32>,
    /// Id, key or name of a project; an anchor needs none.
    project: Option<String>,
    /// The zone of the text, an IANA name; `UTC` if absent.
    tz: Option<String>,
}

/// What stands in the middle of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// This record.
    Record(RecordId),
    /// The best match of these words.
    Query(String),
}

/// A question that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineAsk {
    /// Its middle.
    pub anchor: Anchor,
    /// Rows before it.
    pub before: u32,
    /// Rows after it.
    pub after: u32,
    /// The project that is named.
    pub project: Option<String>,
    /// The reader's zone.
    pub zone: Zone,
}

impl TimelineAsk {
    const NAMES: [&str; 5] = ["anchor", "query", "depth_before", "depth_after", "project"];

    /// Reads the arguments of tool `timeline`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read; `anchor` for both or
    /// neither of anchor and query.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let others = ["anchor", "depth_before", "depth_after"];
        let arguments = object(arguments, &["query", "project"], &others)?;
        let text = |name| arguments.get(name).and_then(Value::as_str);
        let anchor = match (arguments.get("anchor"), text("query")) {
            (Some(anchor), None) => Anchor::Record(record(anchor)?),
            (None, Some(words)) => Anchor::Query(query(words)?),
            _ => {
                let allowed = "either an anchor or a query";
                return Err(Rejection::invalid_input("anchor", allowed));
            }
        };
        let depth = |name| {
            let depth = number(name, arguments.get(name), 0, limits::TIMELINE_DEPTH)?;
            Ok::<_, Rejection>(depth.unwrap_or(limits::DEFAULT_TIMELINE_DEPTH))
        };
        Ok(Self {
            anchor,
            before: depth("depth_before")?,
            after: depth("depth_after")?,
            project: text("project").map(str::to_owned),
            zone: Zone::UTC,
        })
    }

    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// As [`TimelineAsk::from_arguments`].
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        let given = |name| Some((String::from(name), Value::from(pairs.text(name)?)));
        let arguments: Map<String, Value> = Self::NAMES.into_iter().filter_map(given).collect();
        Ok(Self {
            zone: Zone::named(pairs.text("tz").unwrap_or_default()),
            ..Self::from_arguments(Value::Object(arguments))?
        })
    }
}

fn record(anchor: &Value) -> Result<RecordId, Rejection> {
    let refuse = || Rejection::invalid_input("anchor", "an id such as 41, S7 or P3");
    let named = ids("anchor", Some(anchor)).map_err(|_| refuse())?;
    match named.as_deref() {
        Some([id]) => Ok(*id),
        _ => Err(refuse()),
    }
}

/// What happened around a record, in order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TimelineAnswer {
    /// The record in its middle; null if no record matches the query.
    pub anchor: Option<String>,
    /// The rows, oldest first, the anchor among them.
    pub rows: Vec<TimelineItem>,
    /// The same for an agent to read.
    pub text: String,
}

/// A row of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimelineItem {
    /// `41`, `S7` or `P3`.
    pub id: String,
    /// `observation`, `summary` or `prompt`.
    pub kind: String,
    /// One line.
    pub title: String,
    /// The type of an observation.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub observation_type: Option<String>,
    /// The project's key.
    pub project: String,
    /// The author's handle, or `key:<key id>`.
    pub author: String,
    /// When it happened.
    #[serde(serialize_with = "crate::time::millis")]
    pub at: DateTime<Utc>,
    /// What reading an observation costs, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_tokens: Option<u32>,
}

impl From<TimelineRow> for TimelineItem {
    fn from(TimelineRow { row, read_tokens }: TimelineRow) -> Self {
        Self {
            id: row.id.to_string(),
            kind: row.id.kind.word().to_owned(),
            title: cairn_domain::search::title(&row.title),
            observation_type: row.kind.map(|kind| kind.name().to_owned()),
            project: row.project.key,
            author: row.author,
            at: row.at,
            read_tokens: row.kind.map(|_| read_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_timeline_has_one_middle() {
        let read = TimelineAsk::from_arguments;
        for anchor in [json!(41), json!("#41"), json!("[41]")] {
            let ask = read(json!({ "anchor": anchor })).expect("read");
            assert_eq!(ask.anchor, Anchor::Record(RecordId::observation(41)));
            assert_eq!((ask.before, ask.after), (3, 3));
        }
        let ask = read(json!({"query": " pool ", "depth_before": "0", "depth_after": 50}));
        let ask = ask.expect("read");
        assert_eq!(ask.anchor, Anchor::Query("pool".to_owned()));
        assert_eq!((ask.before, ask.after), (0, 50));
        for (arguments, argument) in [
            (json!({}), "anchor"),
            (json!({"anchor": 1, "query": "x"}), "anchor"),
            (json!({"anchor": [1, 2]}), "anchor"),
            (json!({"anchor": "T118"}), "anchor"),
            (json!({"query": "x".repeat(501)}), "query"),
            (json!({"anchor": 1, "depth_after": 51}), "depth_after"),
        ] {
            match read(arguments) {
                Err(Rejection::InvalidInput { argument: at, .. }) => assert_eq!(at, argument),
                other => panic!("{argument}: {other:?}"),
            }
        }
    }

    #[test]
    fn an_address_says_the_same() {
        let pairs = [
            ("anchor", "S7"),
            ("depth_before", "9"),
            ("tz", "Asia/Shanghai"),
            ("x", "y"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ask = TimelineAsk::read(&Pairs(pairs.to_vec())).expect("read");
        assert_eq!(
            (ask.anchor, ask.before),
            (Anchor::Record(RecordId::summary(7)), 9)
        );
        assert_eq!(ask.zone, Zone::named("Asia/Shanghai"));
    }
}
