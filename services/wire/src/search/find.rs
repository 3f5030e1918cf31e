//! What a search with filters and pages is asked: the same by address, by body and by arguments of
//! the tool (contract 9.2, 10.1, 10.4).

use cairn_domain::context::Zone;
use cairn_domain::filter::{ByAuthor, Filter, file_path};
use cairn_domain::ids::RecordKind;
use cairn_domain::observation::{Concept, ObservationType};
use cairn_domain::redact::safe;
use cairn_domain::search::input::{number, object, texts};
use cairn_domain::search::pages::Order;
use cairn_domain::search::results::Form;
use cairn_domain::{Rejection, bounds, limits};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::query::Pairs;

/// The kind of what is searched, but no record.
const TOOL_USE: &str = "tool_use";

/// The question of `GET /v1/search`, as it is documented. It is read by [`FindAsk::read`].
#[derive(Debug, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct SearchQuery {
    /// Words to look for, at most 500 UTF-16 code units; nothing in them is an operator.
    query: Option<String>,
    /// Id, key or name of a project, `*` for all; repeated for several. The current project if
    /// absent.
    project: Option<String>,
    /// `observation`, `summary` or `prompt`; several between commas. Or `tool_use` alone.
    kind: Option<String>,
    /// Observations of one of these types, between commas. Also `observations`, `sessions` and
    /// `prompts`, for kinds.
    #[param(rename = "type")]
    #[schema(rename = "type")]
    observation_type: Option<String>,
    /// With one of these concepts, between commas.
    concept: Option<String>,
    /// About a file: the last segments of its path, or a folder above it; repeated for any of
    /// several.
    file: Option<String>,
    /// By this handle, or `key:<key id>`; `me` for the caller's own.
    author: Option<String>,
    /// Of the session of this id, alone or behind its host and `/`.
    session: Option<String>,
    /// From this moment on: a date, which means the day in `tz`, or RFC 3339.
    from: Option<String>,
    /// Up to this moment: the whole day of a date.
    to: Option<String>,
    /// The zone of dates and of a text, an IANA name; `UTC` if absent.
    tz: Option<String>,
    /// `relevance` (default with a query), `date_desc` (default without) or `date_asc`.
    #[param(rename = "orderBy")]
    #[schema(rename = "orderBy")]
    order_by: Option<String>,
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Items to pass by, at most 10,000, for those who know no cursor.
    offset: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
    /// `json` (default), or a text: `table` or `list`.
    format: Option<String>,
    /// In a text: `index` (default), or `full` for the records too.
    detail: Option<String>,
}

/// The question of `POST /v1/search`: [`SearchQuery`] as an object, where several values may stand
/// in a list. It is read by [`FindAsk::from_body`].
pub type SearchBody = SearchQuery;

/// A question that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindAsk {
    /// The projects that are named; none for the current one.
    pub projects: Vec<String>,
    /// The words.
    pub query: Option<String>,
    /// What else must hold.
    pub filter: Filter,
    /// Whether tool uses are searched, and no records.
    pub tool_uses: bool,
    /// The order.
    pub order: Order,
    /// Items of a page.
    pub limit: u32,
    /// Items to pass by; 0 with a cursor.
    pub offset: u32,
    /// Where the page before ended, as it was answered.
    pub cursor: Option<String>,
    /// The reader's zone.
    pub zone: Zone,
    /// The form of a text; `None` for items.
    pub form: Option<Form>,
    /// Whether a text holds the records.
    pub full: bool,
}

impl FindAsk {
    /// The names of the tool's arguments: texts, lists and numbers.
    const TEXTS: [&str; 9] = [
        "query",
        "project",
        "author",
        "session",
        "dateStart",
        "dateEnd",
        "orderBy",
        "cursor",
        "format",
    ];
    const LISTS: [&str; 4] = ["type", "obs_type", "concepts", "files"];
    const NUMBERS: [(&str, u32, u32); 2] = [
        ("limit", 1, limits::MAX_FOUND_ROWS),
        ("offset", 0, limits::MAX_OFFSET),
    ];
    const DETAIL: &str = "detail";

    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed; `query_or_filter_required`.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        let format = pairs.text("format").filter(|format| *format != "json");
        let form = format.map(|_| form(pairs, "json, table or list"));
        let form = form.transpose()?;
        Self::of(pairs, limits::LIST_ITEMS, limits::MAX_LIST_ITEMS, form)
    }

    /// Reads the members of a body. Unknown ones are ignored, as parameters are.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_body(body: Value) -> Result<Self, Rejection> {
        let Value::Object(body) = body else {
            return Err(Rejection::invalid_field("", "must be an object"));
        };
        let mut pairs = Vec::new();
        for (name, value) in &body {
            let refuse =
                || Rejection::invalid_field(format!("/{name}"), "a text, or a list of texts");
            push(&mut pairs, name, value).ok_or_else(refuse)?;
        }
        Self::read(&Pairs(pairs))
    }

    /// Reads the arguments of tool `search`.
    ///
    /// # Errors
    /// `invalid_input` naming the first argument that cannot be read; `query_or_filter_required`.
    pub fn from_arguments(arguments: Value) -> Result<Self, Rejection> {
        let all_texts = [&Self::TEXTS[..], &[Self::DETAIL]].concat();
        let others = [&Self::LISTS[..], &Self::NUMBERS.map(|(name, ..)| name)].concat();
        let mut arguments = object(arguments, &all_texts, &others)?;
        for (name, low, high) in Self::NUMBERS {
            let whole = number(name, arguments.get(name), low, high)?;
            set(&mut arguments, name, whole.map(Value::from));
        }
        for name in Self::LISTS {
            // A text may hold several between commas; what looks like a list is one.
            let is_list = |value: &&Value| match value {
                Value::String(text) => text.trim_start().starts_with('['),
                _ => true,
            };
            if let Some(value) = arguments.get(name).filter(is_list) {
                let read = texts(name, Some(value))?;
                set(&mut arguments, name, read.map(Value::from));
            }
        }
        let mut pairs = Vec::new();
        for (name, value) in &arguments {
            let refuse = || Rejection::invalid_input(name, "a text, or a list of texts");
            push(&mut pairs, name, value).ok_or_else(refuse)?;
        }
        let pairs = Pairs(pairs);
        let read = || {
            let form = form(&pairs, "table or list")?;
            Self::of(
                &pairs,
                limits::FOUND_ROWS,
                limits::MAX_FOUND_ROWS,
                Some(form),
            )
        };
        read().map_err(as_argument)
    }

    fn of(pairs: &Pairs, limit: u32, most: u32, form: Option<Form>) -> Result<Self, Rejection> {
        let owned = |name| pairs.text(name).map(str::to_owned);
        let query = pairs.text("query").map(words).transpose()?;
        let projects = pairs.all("project").chain(pairs.list("projects"));
        let projects: Vec<String> = projects.map(str::to_owned).collect();
        if projects.len() > limits::ASKED_PROJECTS {
            let allowed = format!("at most {} projects", limits::ASKED_PROJECTS);
            return Err(Rejection::invalid_field("/projects", allowed));
        }
        let tool_uses = are_tool_uses(pairs, form)?;
        let filter = filter(pairs, tool_uses)?;
        let is_filtered = tool_uses || !filter.is_empty() || !projects.is_empty();
        if query.is_none() && !is_filtered {
            return Err(Rejection::QueryOrFilterRequired);
        }
        let cursor = owned("cursor");
        let offset = pairs.number("offset", 0, limits::MAX_OFFSET)?.unwrap_or(0);
        if cursor.is_some() && offset > 0 {
            return Err(Rejection::invalid_field(
                "/offset",
                "either an offset or a cursor",
            ));
        }
        Ok(Self {
            order: order(pairs, query.is_some())?,
            projects,
            query,
            filter,
            tool_uses,
            limit: pairs.number("limit", 1, most)?.unwrap_or(limit),
            offset,
            cursor,
            zone: Zone::named(pairs.text("tz").unwrap_or_default()),
            form,
            full: detail(pairs)?,
        })
    }
}

/// Adds the values of a member; `None` for what is neither a text nor a list of texts.
fn push(pairs: &mut Vec<(String, String)>, name: &str, value: &Value) -> Option<()> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(bounds::clean(text.clone())),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    match value {
        Value::Null => {}
        Value::Array(items) => {
            // One of a list is one, whatever commas it holds.
            let name = match name {
                "files" => "file",
                "projects" => "project",
                name => name,
            };
            for item in items {
                pairs.push((name.to_owned(), text(item)?));
            }
        }
        scalar => pairs.push((name.to_owned(), text(scalar)?)),
    }
    Some(())
}

fn set(arguments: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(arguments.insert(name.to_owned(), value)),
        None => drop(arguments.remove(name)),
    }
}

/// A refusal of a parameter as one of an argument.
fn as_argument(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::InvalidField { pointer, detail } => {
            Rejection::invalid_input(pointer.trim_start_matches('/'), &detail)
        }
        other => other,
    }
}

fn words(text: &str) -> Result<String, Rejection> {
    if bounds::units(text) > limits::QUERY_UNITS || text.len() > limits::QUERY_BYTES {
        let allowed = "1 to 500 UTF-16 code units and at most 1,024 bytes";
        return Err(Rejection::invalid_field("/query", allowed));
    }
    // As records are searched by it: a secret is in none, and in no cursor or audit line.
    let kept = safe(text);
    Ok(bounds::head_bytes(&kept, limits::QUERY_BYTES).to_owned())
}

/// Whether the kind that is asked for is the one that is no record.
fn are_tool_uses(pairs: &Pairs, form: Option<Form>) -> Result<bool, Rejection> {
    let kinds: Vec<&str> = pairs.list("kind").collect();
    match kinds.as_slice() {
        [TOOL_USE] if form.is_none() => Ok(true),
        [TOOL_USE] => Err(Rejection::invalid_field("/format", "json for tool uses")),
        kinds if kinds.contains(&TOOL_USE) => {
            Err(Rejection::invalid_field("/kind", "tool_use alone"))
        }
        _ => Ok(false),
    }
}

fn filter(pairs: &Pairs, tool_uses: bool) -> Result<Filter, Rejection> {
    let all = [
        RecordKind::Observation,
        RecordKind::Summary,
        RecordKind::Prompt,
    ];
    let mut kinds = match tool_uses {
        true => Vec::new(),
        false => pairs.named("kind", all, RecordKind::word)?,
    };
    let mut types = pairs.named("obs_type", ObservationType::ALL, ObservationType::name)?;
    for text in pairs.list("type") {
        match (kind_of_others(text), ObservationType::from_name(text)) {
            (Some(kind), _) => kinds.push(kind),
            (None, Some(named)) => types.push(named),
            (None, None) => {
                let names = ObservationType::ALL.map(ObservationType::name).join(", ");
                let allowed = format!("one of {names}, observations, sessions, prompts");
                return Err(Rejection::invalid_field("/type", allowed));
            }
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    types.sort_unstable_by_key(|named| named.name());
    types.dedup();
    let concepts = pairs.known_as(&["concept", "concepts"]);
    // A filter that names nothing would let everything pass.
    for name in ["kind", "type", "obs_type", concepts, "files"] {
        if pairs.text(name).is_some() && pairs.list(name).next().is_none() {
            return Err(Rejection::invalid_field(format!("/{name}"), "a name"));
        }
    }
    let files = pairs.all("file").chain(pairs.all("filePath"));
    let files = files.chain(pairs.list("files")).map(file_path);
    let mut files: Vec<String> = files.collect();
    if files.iter().any(String::is_empty) {
        return Err(Rejection::invalid_field("/file", "a file or a folder"));
    }
    files.sort_unstable();
    files.dedup();
    if files.len() > limits::ASKED_FILES {
        let allowed = format!("at most {} files", limits::ASKED_FILES);
        return Err(Rejection::invalid_field("/files", allowed));
    }
    let from = pairs.known_as(&["from", "dateStart", "date_from"]);
    let to = pairs.known_as(&["to", "dateEnd", "date_to"]);
    let period = pairs.period_of(from, to)?;
    Ok(Filter {
        kinds,
        types,
        concepts: pairs.named(concepts, Concept::ALL, Concept::name)?,
        files,
        author: pairs.text("author").map(ByAuthor::read),
        session: pairs.text("session").map(str::to_owned),
        from: period.from,
        until: period.until,
    })
}

/// The kinds as other tools name them.
fn kind_of_others(name: &str) -> Option<RecordKind> {
    match name {
        "observations" => Some(RecordKind::Observation),
        "sessions" => Some(RecordKind::Summary),
        "prompts" => Some(RecordKind::Prompt),
        _ => None,
    }
}

/// Without words nothing is more relevant than anything else.
fn order(pairs: &Pairs, by_words: bool) -> Result<Order, Rejection> {
    let name = pairs.known_as(&["orderBy", "order"]);
    let asked = pairs.text(name).map(|text| {
        let known = Order::ALL.into_iter().find(|order| order.name() == text);
        let allowed = || format!("one of {}", Order::ALL.map(Order::name).join(", "));
        known.ok_or_else(|| Rejection::invalid_field(format!("/{name}"), allowed()))
    });
    Ok(match asked.transpose()? {
        Some(Order::Relevance) | None if by_words => Order::Relevance,
        Some(Order::Relevance) | None => Order::DateDescending,
        Some(order) => order,
    })
}

fn form(pairs: &Pairs, allowed: &str) -> Result<Form, Rejection> {
    let Some(text) = pairs.text("format") else {
        return Ok(Form::default());
    };
    let known = Form::ALL.into_iter().find(|form| form.name() == text);
    known.ok_or_else(|| Rejection::invalid_field("/format", allowed))
}

fn detail(pairs: &Pairs) -> Result<bool, Rejection> {
    match pairs.text("detail") {
        None | Some("index") => Ok(false),
        Some("full") => Ok(true),
        Some(_) => Err(Rejection::invalid_field("/detail", "index or full")),
    }
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
