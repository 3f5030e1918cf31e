//! Queries that cost the most, or would in a language of queries: each must be answered.

use std::time::Instant;

use serde_json::Value;

use super::loaded::Loaded;
use super::mix::{Scope, step};
use crate::api::Api;
use crate::bench::cpu;
use crate::bench::rig::Rig;

/// What became of one.
pub struct Answered {
    /// What it is.
    pub name: &'static str,
    /// Why it was not answered, if it was not.
    pub refusal: Option<String>,
    /// Rows of its index.
    pub rows: usize,
    /// Whether the answer says that it may lack something.
    pub is_partial: bool,
    /// Milliseconds of a processor that it took of Postgres.
    pub cpu_ms: f64,
    /// Milliseconds until it was answered.
    pub ms: f64,
}

fn queries(loaded: &Loaded) -> Vec<(&'static str, String)> {
    let words = |from: &[String], count: usize| -> Vec<String> {
        from.iter().cycle().take(count).cloned().collect()
    };
    let common = words(&loaded.common, 8);
    let rare = words(&loaded.rare, 30);
    let mid = words(&loaded.mid, 8);
    let syllable = &common[0][..2];
    vec![
        (
            "a prefix and a rare word",
            format!("{syllable}:* & {}", rare[0]),
        ),
        (
            "a phrase of two common words",
            format!("\"{} {}\"", common[0], common[1]),
        ),
        ("any of 30 rare words", rare.join(" | ")),
        ("30 rare words", rare.join(" ")),
        ("8 common words", common.join(" ")),
        ("8 middling words", mid.join(" ")),
        ("a common word in titles", format!("{}:A", common[0])),
        ("not a common word", format!("!{}", common[0])),
        ("a short prefix", format!("{}*", &common[1][..3])),
        (
            "two rare words that never meet",
            format!("{} {}", rare[1], rare[2]),
        ),
        ("a stop word", "the".to_owned()),
        ("signs", "!&|():*'\\ -- %".to_owned()),
    ]
}

/// Asks them in the largest tenant, one after the other, across it and inside its largest
/// project.
///
/// # Errors
/// If processes cannot be looked at.
pub async fn ask(rig: &Rig, api: &Api, loaded: &Loaded) -> anyhow::Result<Vec<Answered>> {
    let mut all = Vec::new();
    for scope in [Scope::Tenant, Scope::Project] {
        for (name, query) in queries(loaded) {
            let operation = step(&loaded.largest, &query, scope);
            let postgres = rig.postgres_pid();
            let (began, before) = (Instant::now(), cpu::of_children(postgres)?);
            let answer = api.call(&operation).await;
            let ms = began.elapsed().as_secs_f64() * 1_000.0;
            let spent = cpu::of_children(postgres)?.saturating_sub(before);
            let (refusal, body) = match answer {
                Ok(body) => (None, serde_json::from_slice(&body)?),
                Err(error) => (Some(error.to_string()), Value::Null),
            };
            all.push(Answered {
                name,
                refusal,
                rows: body["rows"].as_array().map_or(0, Vec::len),
                is_partial: body["partial"] == true,
                cpu_ms: spent as f64 / 1_000_000.0,
                ms,
            });
        }
    }
    Ok(all)
}
