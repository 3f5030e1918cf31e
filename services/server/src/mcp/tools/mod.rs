//! Every tool on one page: its names, words, schema and action are one entry of [`TOOLS`].
//!
//! Which of them a host is shown is decided in [`listing`]; any of them can be called. Schemas and
//! calls stand in one file a noun.

mod context;
mod guide;
mod listing;
mod observations;
mod search;
mod timeline;
mod tool_uses;
mod work_state;

use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool as ListedTool, ToolAnnotations};
use serde_json::Value;
use uuid::Uuid;

use super::answer::Answer;
use crate::actions::Failure;
use crate::app::App;
use crate::auth::Caller;
pub use listing::Listing;
use listing::Profile;

/// A call of a tool.
pub struct Call<'a> {
    /// What the process shares.
    pub app: &'a App,
    /// Who calls.
    pub caller: &'a Caller,
    /// The arguments as they came: a tool reads them itself, leniently (contract 15.4).
    pub arguments: Value,
    /// Makes a write repeatable.
    pub event_id: Option<Uuid>,
}

type Answered<'a> = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send + 'a>>;

/// A tool.
struct Tool {
    /// Its name, then second names of the same action.
    names: &'static [&'static str],
    profile: Profile,
    /// What a model is told of it.
    words: &'static str,
    schema: fn() -> Value,
    action: for<'a> fn(Call<'a>) -> Answered<'a>,
    /// Whether it changes nothing.
    is_read_only: bool,
    /// Shown at once by hosts that hide tools behind a tool search.
    is_always_loaded: bool,
}

impl Tool {
    /// What most tools are: of the core, reading, shown when they are looked for.
    const fn reading(
        names: &'static [&'static str],
        words: &'static str,
        schema: fn() -> Value,
        action: for<'a> fn(Call<'a>) -> Answered<'a>,
    ) -> Self {
        Self {
            names,
            profile: Profile::Core,
            words,
            schema,
            action,
            is_read_only: true,
            is_always_loaded: false,
        }
    }

    const fn legacy(self) -> Self {
        Self {
            profile: Profile::Legacy,
            ..self
        }
    }

    const fn always_loaded(self) -> Self {
        Self {
            is_always_loaded: true,
            ..self
        }
    }

    const fn writing(self) -> Self {
        Self {
            is_read_only: false,
            ..self
        }
    }
}

/// Listed in two places, as other tools know it.
const SEARCH: Tool = Tool::reading(
    &["search"],
    "Legacy: search with filters (type, concept, file, author, dates). Prefer mem_search.",
    search::find_schema,
    |call| Box::pin(search::find(call)),
)
.legacy();

/// All tools, in the order in which they are listed.
const TOOLS: &[Tool] = &[
    Tool::reading(
        &["important_workflow", "__IMPORTANT"],
        "Read first: how to search memory.",
        guide::schema,
        |call| Box::pin(guide::workflow(call)),
    )
    .legacy(),
    Tool::reading(
        &["mem_search"],
        "Search the team's memory, for every memory question. query gives titles; continuation with selectedIds gives what surrounds them; once more gives the full records. mode=\"auto\" does all in one call.",
        search::mem_search_schema,
        |call| Box::pin(search::mem_search(call)),
    )
    .always_loaded(),
    Tool::reading(
        &["get_observations"],
        "Legacy: full records by id, for ids already in front of you (session index, a search).",
        observations::get_schema,
        |call| Box::pin(observations::get(call)),
    )
    .always_loaded(),
    Tool::reading(
        &["get_tool_uses"],
        "Last resort, rarely needed: original input and output of tool calls whose ids a record named.",
        tool_uses::schema,
        |call| Box::pin(tool_uses::get(call)),
    ),
    Tool::reading(
        &["work_state_write"],
        "Add to a to-do list or tracked state of this project, shared with the team; action claims or releases a task.",
        work_state::write_schema,
        |call| Box::pin(work_state::write(call)),
    )
    .writing()
    .always_loaded(),
    Tool::reading(
        &["work_state_read"],
        "Read this project's lists.",
        work_state::read_schema,
        |call| Box::pin(work_state::read(call)),
    ),
    Tool::reading(
        &["save_memory"],
        "Save one fact to the team's memory.",
        observations::save_schema,
        |call| Box::pin(observations::save(call)),
    )
    .writing(),
    SEARCH,
    Tool::reading(
        &["timeline"],
        "Legacy: what happened around a record. Prefer mem_search.",
        timeline::schema,
        |call| Box::pin(timeline::show(call)),
    )
    .legacy(),
    Tool::reading(
        &["observation_add", "memory_add"],
        "Add a finished observation to the team's memory. For a single fact, save_memory.",
        observations::add_schema,
        |call| Box::pin(observations::add_observation(call)),
    )
    .writing()
    .legacy(),
    Tool {
        names: &["observation_search", "memory_search"],
        ..SEARCH
    },
    Tool::reading(
        &["observation_context", "memory_context"],
        "Legacy: what this project remembers, newest first, in one short text.",
        context::schema,
        |call| Box::pin(context::overview(call)),
    )
    .legacy(),
];

/// Calls a tool, whatever is listed; `None` if there is none of this name.
pub async fn call(name: &str, call: Call<'_>) -> Option<Result<Answer, Failure>> {
    let tool = TOOLS.iter().find(|tool| tool.names.contains(&name))?;
    Some((tool.action)(call).await)
}

/// The tools that a listing shows, in the order of the table.
pub fn list(listing: &Listing) -> Vec<ListedTool> {
    let named = TOOLS
        .iter()
        .flat_map(|tool| tool.names.iter().map(move |name| (tool, *name)));
    named
        .filter(|(tool, name)| listing.shows(tool.profile, name))
        .map(|(tool, name)| tool.listed(name))
        .collect()
}

impl Tool {
    fn listed(&self, name: &'static str) -> ListedTool {
        let Value::Object(schema) = (self.schema)() else {
            unreachable!("schemas are objects")
        };
        let mut tool = ListedTool::new(name, self.words, Arc::new(schema));
        let annotations = ToolAnnotations::new()
            .read_only(self.is_read_only)
            .open_world(false);
        tool.annotations = Some(match self.is_read_only {
            true => annotations,
            // What a tool writes is added: nothing that was there goes away.
            false => annotations.destructive(false),
        });
        if self.is_always_loaded {
            let mut meta = JsonObject::new();
            meta.insert("anthropic/alwaysLoad".to_owned(), Value::Bool(true));
            tool.meta = Some(MetaObject(meta));
        }
        tool
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn c049_every_schema_is_one_that_all_hosts_accept() {
        for tool in list(&Listing::of("legacy")) {
            let schema = &tool.input_schema;
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            assert!(
                ["oneOf", "anyOf", "allOf"]
                    .iter()
                    .all(|key| !schema.contains_key(*key))
            );
            let properties = schema["properties"].as_object().expect("properties");
            for property in properties.values().filter(|p| p["type"] == "array") {
                assert!(property["items"]["type"].is_string(), "{property}");
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(
                tool.name.len() <= 48 && tool.name.chars().all(plain),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn a_name_belongs_to_one_tool() {
        let names = TOOLS.iter().flat_map(|tool| tool.names);
        let mut seen = HashSet::new();
        assert!(names.into_iter().all(|name| seen.insert(*name)));
        assert!(TOOLS.iter().all(|tool| !tool.names.is_empty()));
    }

    #[test]
    fn the_core_list_costs_a_host_little() {
        let text = serde_json::to_string(&list(&Listing::of("core"))).expect("serialises");
        let tokens = cairn_domain::bounds::est_tokens(&text);
        assert!(tokens <= 2_500, "{tokens}");
    }
}
