//! Settings of the session-start context (contract 19.2): each is a parameter of the question.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use cairn_wire::context::ContextQuery;
use cairn_wire::domain::context::FullField;
use cairn_wire::domain::limits;
use cairn_wire::domain::observation::{Concept, ObservationType};

use super::layers::{Layers, parse_bool};

/// Reads them; one that is not set is left to the service's default.
pub(super) fn read(layers: &mut Layers) -> ContextQuery {
    let mut flag = |name: &str| {
        let name = format!("context_{name}");
        layers.parsed(&name, "true or false", parse_bool)
    };
    ContextQuery {
        show_read_tokens: flag("show_read_tokens"),
        show_work_tokens: flag("show_work_tokens"),
        show_savings_percent: flag("show_savings_percent"),
        show_savings_amount: flag("show_savings_amount"),
        show_last_summary: flag("show_last_summary"),
        show_last_reply: flag("show_last_reply"),
        show_author: flag("show_author"),
        main_agent_only: flag("main_agent_only"),
        observations: number(
            layers,
            "context_observations",
            0..=limits::MAX_CONTEXT_OBSERVATIONS,
        ),
        summaries: number(
            layers,
            "context_summaries",
            0..=limits::MAX_CONTEXT_SUMMARIES,
        ),
        full_count: number(layers, "context_full_count", 0..=limits::MAX_CONTEXT_FULL),
        full_field: layers.parsed("context_full_field", "narrative or facts", |text| {
            FullField::from_name(&text).map(|_| text)
        }),
        types: layers.parsed("context_types", "types separated by commas", |text| {
            names(text, |name| ObservationType::from_name(name).is_some())
        }),
        concepts: layers.parsed("context_concepts", "concepts separated by commas", |text| {
            names(text, |name| Concept::from_name(name).is_some())
        }),
        ..ContextQuery::default()
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    layers: &mut Layers,
    name: &str,
    range: RangeInclusive<T>,
) -> Option<T> {
    let allowed = format!("{} to {}", range.start(), range.end());
    layers.parsed(name, &allowed, |text| {
        text.parse().ok().filter(|number| range.contains(number))
    })
}

/// Names separated by commas; `all` is the same as none.
fn names(text: String, is_known: impl Fn(&str) -> bool) -> Option<String> {
    if text == "all" {
        return Some(String::new());
    }
    let mut names = text.split(',').map(str::trim);
    names
        .all(|name| name.is_empty() || is_known(name))
        .then_some(text)
}
