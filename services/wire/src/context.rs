//! Context: what a session start asks for and gets.

use std::str::FromStr;

use cairn_domain::Rejection;
use cairn_domain::context::{Budget, FullField, Options, Selection, Zone};
use cairn_domain::limits;
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::room::Room;
use cairn_domain::search::input::{number, object, query};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// The question of `GET /v1/context`. What is left out has the default of the client's setting of
/// the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ContextQuery {
    /// Id, key or name of a project; the current project if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The reader's time zone, an IANA name; `UTC` if absent or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// `index` (default), `full`, `table` or `overview`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// With `table`: a folder, relative to the checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// With `overview`: only observations that match these words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// UTF-16 code units for everything that the session start prints: 4,000 to 100,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<usize>,
    /// Estimated tokens for the same, for a host that counts those: at least 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Units of the budget that the client takes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<usize>,
    /// The newest observations, at most: 0 to 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<u32>,
    /// The newest summaries, at most: 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summaries: Option<u32>,
    /// The newest rows shown in full: 0 to 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_count: Option<u32>,
    /// What they show: `narrative` or `facts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_field: Option<String>,
    /// The cost of reading each row's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_read_tokens: Option<bool>,
    /// What each row's record cost to produce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_work_tokens: Option<bool>,
    /// The share of work that reading saves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_savings_percent: Option<bool>,
    /// The tokens that reading saves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_savings_amount: Option<bool>,
    /// The newest summary's fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_last_summary: Option<bool>,
    /// The end of the reader's own previous session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_last_reply: Option<bool>,
    /// The author of each row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_author: Option<bool>,
    /// Only these types, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<String>,
    /// Only records with one of these concepts, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concepts: Option<String>,
    /// Leave out what subagents did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_agent_only: Option<bool>,
}

/// The form of a context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// What a session starts with: work state and index within their budget.
    Index,
    /// The same without a limit.
    Full,
    /// Rows grouped by file, of a folder if one is named.
    Table(Option<String>),
    /// What there is, newest first, in one short text; only what matches, if a query is given.
    Overview(Option<String>),
}

/// A question that was read: two that mean the same are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextAsk {
    /// The form.
    pub format: Format,
    /// The reader's zone.
    pub zone: Zone,
    /// The limits.
    pub budget: Budget,
    /// Which rows.
    pub selection: Selection,
    /// What they show.
    pub options: Options,
    /// Whether the end of the reader's previous session is wanted.
    pub last_reply: bool,
}

impl ContextQuery {
    /// Reads the arguments of tool `observation_context`: an overview.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let arguments = object(arguments, &["query", "project"], &["limit"])?;
        let text = |name| arguments.get(name).and_then(Value::as_str);
        let limit = arguments.get("limit");
        let words = text("query").map(str::trim).filter(|text| !text.is_empty());
        Ok(Self {
            format: Some("overview".to_owned()),
            query: words.map(query).transpose()?,
            project: text("project").map(str::to_owned),
            observations: number("limit", limit, 1, limits::MAX_CONTEXT_OBSERVATIONS)?,
            ..Self::default()
        })
    }

    /// Reads the question.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn parse(&self) -> Result<ContextAsk, Rejection> {
        let full = within("full_count", self.full_count, 0, limits::MAX_CONTEXT_FULL)?;
        let default = Options::default();
        let full_field = self.full_field.as_deref().map(|name| {
            let allowed = || Rejection::invalid_field("/full_field", "narrative or facts");
            FullField::from_name(name).ok_or_else(allowed)
        });
        Ok(ContextAsk {
            format: self.format()?,
            zone: Zone::named(self.tz.as_deref().unwrap_or_default()),
            budget: self.budget()?,
            selection: Selection {
                observations: within(
                    "observations",
                    self.observations,
                    0,
                    limits::MAX_CONTEXT_OBSERVATIONS,
                )?
                .unwrap_or(limits::CONTEXT_OBSERVATIONS),
                summaries: within(
                    "summaries",
                    self.summaries,
                    0,
                    limits::MAX_CONTEXT_SUMMARIES,
                )?
                .unwrap_or(limits::CONTEXT_SUMMARIES),
                full: full.unwrap_or(0),
                types: names("types", self.types.as_deref(), ObservationType::from_name)?,
                concepts: names("concepts", self.concepts.as_deref(), Concept::from_name)?,
                main_agent_only: self.main_agent_only.unwrap_or(true),
            },
            options: Options {
                show_read_tokens: self.show_read_tokens.unwrap_or(default.show_read_tokens),
                show_work_tokens: self.show_work_tokens.unwrap_or(default.show_work_tokens),
                show_savings_percent: self
                    .show_savings_percent
                    .unwrap_or(default.show_savings_percent),
                show_savings_amount: self
                    .show_savings_amount
                    .unwrap_or(default.show_savings_amount),
                show_last_summary: self.show_last_summary.unwrap_or(default.show_last_summary),
                show_author: self.show_author.unwrap_or(default.show_author),
                full_count: full.unwrap_or(0),
                full_field: full_field.transpose()?.unwrap_or_default(),
            },
            last_reply: self.show_last_reply.unwrap_or(false),
        })
    }

    fn format(&self) -> Result<Format, Rejection> {
        let path = self.path.as_deref().map(|path| path.trim_matches('/'));
        let path = path.filter(|path| !matches!(*path, "" | "."));
        if path.is_some_and(|path| path.len() > limits::PATH_BYTES) {
            let allowed = format!("at most {} bytes", limits::PATH_BYTES);
            return Err(Rejection::invalid_field("/path", allowed));
        }
        let query = self.query.as_deref().map(str::trim);
        match self.format.as_deref().unwrap_or("index") {
            "index" => Ok(Format::Index),
            "full" => Ok(Format::Full),
            "table" => Ok(Format::Table(path.map(str::to_owned))),
            "overview" => {
                let query = query.filter(|query| !query.is_empty());
                Ok(Format::Overview(query.map(str::to_owned)))
            }
            _ => Err(Rejection::invalid_field(
                "/format",
                "index, full, table or overview",
            )),
        }
    }

    fn budget(&self) -> Result<Budget, Rejection> {
        let least = limits::LEAST_CONTEXT_UNITS;
        let units = within("budget", self.budget, least, limits::MOST_CONTEXT_UNITS)?;
        let units = units.unwrap_or(limits::CONTEXT_UNITS);
        let tokens = within("tokens", self.tokens, least / 4, limits::MOST_CONTEXT_UNITS)?;
        // What is reserved comes out of the part that all but the index share.
        let most = tokens.map_or(units, |tokens| units.min(4 * tokens));
        let most = most * limits::CONTEXT_SHARE / 100;
        let reserve = within("reserve", self.reserve, 0, most)?;
        Ok(Budget {
            limit: Room {
                units,
                tokens: tokens.unwrap_or(usize::MAX),
            },
            reserve: reserve.unwrap_or(0),
        })
    }
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: Option<T>,
    low: T,
    high: T,
) -> Result<Option<T>, Rejection> {
    match value {
        Some(value) if value < low || value > high => {
            let allowed = format!("a whole number from {low} to {high}");
            Err(Rejection::invalid_field(format!("/{name}"), allowed))
        }
        value => Ok(value),
    }
}

/// Names separated by commas.
fn names<T: PartialEq>(
    parameter: &str,
    list: Option<&str>,
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Rejection> {
    let names = list.unwrap_or_default().split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    let mut read = Vec::new();
    for name in names {
        let unknown = || Rejection::invalid_field(format!("/{parameter}"), "names of the contract");
        let named = from_name(name).ok_or_else(unknown)?;
        if !read.contains(&named) {
            read.push(named);
        }
    }
    Ok(read)
}

/// The context with its parts and sizes, for a caller that accepts JSON.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ContextAnswer {
    /// The text a session starts with.
    pub text: String,
    /// Its length in UTF-16 code units.
    pub units: usize,
    /// Its cost in tokens, estimated.
    pub est_tokens: usize,
    /// What it is made of, in order.
    #[serde(default)]
    pub parts: Vec<ContextPart>,
    /// The highest moment of the work state in it, `<ms>.<counter>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hlc: Option<String>,
}

/// A part of a context.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ContextPart {
    /// `work_state` or `index`; of the other forms `table` or `overview`.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its length in UTF-16 code units.
    pub units: usize,
}

/// A part that a cache can be cleared of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builder {
    /// Session-start contexts.
    Context,
}

impl FromStr for Builder {
    type Err = Rejection;

    fn from_str(name: &str) -> Result<Self, Rejection> {
        match name {
            "context" => Ok(Self::Context),
            _ => Err(Rejection::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_question_has_the_defaults() {
        let ask = ContextQuery::default().parse().expect("read");
        assert_eq!(ask.format, Format::Index);
        assert_eq!(
            (ask.selection.observations, ask.selection.summaries),
            (50, 10)
        );
        assert!(ask.selection.main_agent_only && !ask.last_reply);
        assert_eq!(ask.budget.limit, Room::units(10_000));
        assert_eq!(ask.options, Options::default());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_name() {
        let refused = |query: ContextQuery| match query.parse() {
            Err(Rejection::InvalidField { pointer, .. }) => pointer,
            other => panic!("{other:?}"),
        };
        let text = |text: &str| Some(text.to_owned());
        for (query, pointer) in [
            (
                ContextQuery {
                    budget: Some(3_999),
                    ..Default::default()
                },
                "/budget",
            ),
            (
                ContextQuery {
                    reserve: Some(3_001),
                    ..Default::default()
                },
                "/reserve",
            ),
            (
                ContextQuery {
                    observations: Some(501),
                    ..Default::default()
                },
                "/observations",
            ),
            (
                ContextQuery {
                    format: text("x"),
                    ..Default::default()
                },
                "/format",
            ),
            (
                ContextQuery {
                    types: text("bugfix,x"),
                    ..Default::default()
                },
                "/types",
            ),
            (
                ContextQuery {
                    full_field: text("x"),
                    ..Default::default()
                },
                "/full_field",
            ),
        ] {
            assert_eq!(refused(query), pointer);
        }
    }
}
