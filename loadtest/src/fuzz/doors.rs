//! The doors that search, and what each may answer to a query.

use std::collections::HashSet;

use anyhow::{Context, bail};
use cairn_wire::domain::bounds::units;
use cairn_wire::domain::limits;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::bench::corpus::Rng;

/// The project that is searched.
const PROJECT: &str = "name:fuzz";

/// A caller of every door.
#[derive(Clone)]
pub struct Doors {
    http: Client,
    url: String,
    key: String,
}

impl Doors {
    /// A caller with `key`.
    ///
    /// # Errors
    /// If no HTTP client can be made.
    pub fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        // The second call in a process finds it installed, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            http: Client::builder().no_proxy().build()?,
            url: url.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Stores what is searched.
    ///
    /// # Errors
    /// If something of it is refused.
    pub async fn remember(&self, records: &[Value]) -> anyhow::Result<()> {
        let batch = json!({"project": {"key": PROJECT}, "items": records}).to_string();
        let (status, text) = self.send(self.post("/v1/events", batch)).await?;
        match status {
            200 => Ok(()),
            status => bail!("storing records: {status} {text}"),
        }
    }

    /// Asks a query at each door: how many questions, and each that was answered as none may be.
    pub async fn ask(&self, query: &str, chance: &mut Rng) -> (usize, Vec<String>) {
        let mut text = json!(query).to_string();
        if chance.below(20) == 0 {
            // Half of a pair, as a host's own cut leaves it.
            text = format!("{}\\ud83d\"", &text[..text.len() - 1]);
        }
        let mode = ["guided", "auto"][chance.below(2)];
        let mut questions = vec![
            (
                "mem-search",
                format!("{{\"query\":{text},\"mode\":\"{mode}\"}}"),
            ),
            ("search", format!("{{\"query\":{text}{}}}", beside(chance))),
        ];
        // The same as a value of a filter, beside words that are found.
        let filter = ["file", "author", "session", "files"][chance.below(4)];
        let filtered = format!(
            "{{\"query\":\"pool\",\"{filter}\":{text}{}}}",
            beside(chance)
        );
        questions.push(("filter", filtered));
        let mut faults = Vec::new();
        let mut count = 0;
        for (door, body) in questions {
            let path = if door == "filter" { "search" } else { door };
            let request = self.post(&format!("/v1/{path}"), body.clone());
            count += 1;
            let answered = self.send(request).await;
            if let Err(fault) = self.check(answered, query, door).await {
                faults.push(format!("{door}: {body}: {fault:#}"));
            }
        }
        let address = format!("/v1/search?query={}", encoded(query));
        count += 1;
        let answered = self
            .send(self.request(self.http.get(format!("{}{address}", self.url))))
            .await;
        if let Err(fault) = self.check(answered, query, "address").await {
            faults.push(format!("{address}: {fault:#}"));
        }
        (count, faults)
    }

    /// Whether an answer is one that may be given.
    async fn check(
        &self,
        answered: anyhow::Result<(u16, String)>,
        query: &str,
        door: &str,
    ) -> anyhow::Result<()> {
        let (status, text) = answered?;
        if status != 200 {
            let problem: Value = serde_json::from_str(&text).context("a problem")?;
            return match (status, problem["code"].as_str().unwrap_or_default()) {
                (422, "invalid_input" | "invalid_field") if is_too_long(query) => Ok(()),
                (422, "invalid_input" | "query_or_filter_required") if query.trim().is_empty() => {
                    Ok(())
                }
                (414, "uri_too_long") if door == "address" => Ok(()),
                // Too many files between commas.
                (422, "invalid_field") if door == "filter" && text.contains("/files") => Ok(()),
                _ => bail!("{status} {text}"),
            };
        }
        let Ok(answer) = serde_json::from_str::<Value>(&text) else {
            let is_text = text.contains(" result") || text.starts_with("No results");
            anyhow::ensure!(is_text && text.len() <= limits::RESULTS_BYTES, "{text}");
            return Ok(());
        };
        let rows = answer["items"].as_array().or(answer["rows"].as_array());
        let ids: Vec<&str> = rows
            .into_iter()
            .flatten()
            .filter_map(|row| row["id"].as_str())
            .collect();
        let distinct: HashSet<&str> = ids.iter().copied().collect();
        anyhow::ensure!(
            distinct.len() == ids.len(),
            "one stands there twice: {ids:?}"
        );
        Ok(())
    }

    fn post(&self, path: &str, body: String) -> RequestBuilder {
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        self.request(request.header("Content-Type", "application/json"))
    }

    fn request(&self, request: RequestBuilder) -> RequestBuilder {
        request
            .bearer_auth(&self.key)
            .header("Cairn-Project", PROJECT)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<(u16, String)> {
        let response = request.send().await.context("no answer")?;
        let status = response.status().as_u16();
        Ok((status, response.text().await.context("half an answer")?))
    }
}

/// Members beside a query: order, length and form of the answer.
fn beside(chance: &mut Rng) -> String {
    let order = ["relevance", "date_desc", "date_asc"][chance.below(3)];
    let format = ["json", "table", "list"][chance.below(3)];
    let detail = ["index", "full"][chance.below(2)];
    let limit = 1 + chance.below(100);
    let offset = [0, 0, 7, 10_000][chance.below(4)];
    format!(
        ",\"orderBy\":\"{order}\",\"format\":\"{format}\",\"detail\":\"{detail}\",\"limit\":{limit},\
         \"offset\":{offset}"
    )
}

/// Whether a query may be refused for its length, as it is or with what stands for NUL.
fn is_too_long(query: &str) -> bool {
    let clean = query.replace('\0', "\u{fffd}");
    // A lone half of a pair stands for one character more.
    [query, &clean]
        .iter()
        .any(|text| units(text) + 1 > limits::QUERY_UNITS || text.len() + 3 > limits::QUERY_BYTES)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02X}")).collect()
}
