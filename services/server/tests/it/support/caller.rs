//! A caller of a test: one key, one current project, real HTTP.

use std::sync::Once;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

/// Somebody who calls the service.
#[derive(Clone)]
pub struct Caller {
    http: Client,
    base: String,
    key: Option<String>,
    project: Option<String>,
    session: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body as text.
    pub text: String,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The problem's code.
    pub fn code(&self) -> String {
        let body = self.json();
        body["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no problem: {self:?}"))
            .to_owned()
    }

    /// The body of a call that must have succeeded.
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }
}

impl Caller {
    pub fn new(base: &str, key: Option<&str>) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // A service of this process may have done so.
            drop(rustls::crypto::ring::default_provider().install_default());
        });
        Self {
            http: Client::builder().build().expect("a client"),
            base: base.to_owned(),
            key: key.map(str::to_owned),
            project: None,
            session: None,
        }
    }

    /// The same caller in a session, named `<host>/<id>`.
    pub fn in_session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// The same caller in another project.
    pub fn in_project(mut self, project: &str) -> Self {
        self.project = Some(project.to_owned());
        self
    }

    /// The same caller without a current project.
    pub fn nowhere(mut self) -> Self {
        self.project = None;
        self
    }

    /// The same caller at another replica.
    pub fn at(mut self, base: &str) -> Self {
        self.base = base.to_owned();
        self
    }

    /// The key, for callers outside this process.
    pub fn key(&self) -> &str {
        self.key.as_deref().expect("a caller with a key")
    }

    /// The id in the key, as the store knows it.
    pub fn key_id(&self) -> &str {
        self.key().split('_').nth(1).expect("an id")
    }

    /// Where the service is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A request with key and project, to be filled.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(project) = &self.project {
            let encoded: String = project.bytes().map(|b| format!("%{b:02X}")).collect();
            request = request.header("Cairn-Project", encoded);
        }
        if let Some(session) = &self.session {
            request = request.header("Cairn-Session", session);
        }
        request
    }

    pub async fn send(&self, request: RequestBuilder) -> Reply {
        self.try_send(request).await.expect("an answer")
    }

    pub async fn try_send(&self, request: RequestBuilder) -> Result<Reply, reqwest::Error> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Reply {
            status,
            headers,
            text: response.text().await?,
        })
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send(self.request(Method::PATCH, path).json(&body))
            .await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_text(path, body.to_string()).await
    }

    /// Posts exactly these bytes as JSON.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        let request = self.request(Method::POST, path);
        self.send(
            request
                .header("Content-Type", "application/json")
                .body(body),
        )
        .await
    }

    /// Sends items as a batch of the caller's project.
    pub async fn events(&self, items: Vec<Value>) -> Reply {
        self.post("/v1/events", self.batch(items)).await
    }

    /// A batch of the caller's project.
    pub fn batch(&self, items: Vec<Value>) -> Value {
        json!({"project": {"key": self.project.as_deref().unwrap_or("name:none")}, "items": items})
    }

    /// Stores one observation and answers its id.
    pub async fn remember(&self, title: &str, narrative: &str) -> String {
        let body = json!({"type": "discovery", "title": title, "narrative": narrative});
        let answer = self.events(vec![item("observation", body)]).await.ok();
        answer["items"][0]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// Calls a tool; the text of its result, and whether it is an error.
    pub async fn tool(&self, name: &str, arguments: Value) -> (String, bool) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let result = self.post("/mcp", message).await.ok()["result"].clone();
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{result}")).to_owned();
        (text, result["isError"] == true)
    }

    /// The names of the tools that are listed, as a host with this setting sees them.
    pub async fn listed_tools(&self, setting: Option<&str>) -> Vec<String> {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let mut request = self.request(Method::POST, "/mcp").json(&list);
        if let Some(setting) = setting {
            request = request.header("Cairn-Tools", setting);
        }
        let tools = self.send(request).await.ok()["result"]["tools"].clone();
        let tools = tools.as_array().expect("tools").iter();
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        tools.map(name).collect()
    }

    /// Appends an entry to a list.
    pub async fn work(&self, list: &str, fields: Value) -> Reply {
        let body = json!({"list": list, "fields": fields});
        self.post("/v1/work-state/entries", body).await
    }

    /// The open lines of the current project.
    pub async fn open_work(&self) -> String {
        let answer = self.get("/v1/work-state").await.ok();
        answer["text"].as_str().expect("a text").to_owned()
    }

    /// One call of `GET /v1/search`.
    pub async fn search(&self, question: &[(&str, &str)]) -> Reply {
        let byte = |b: u8| match b.is_ascii_alphanumeric() || b"-_.".contains(&b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        };
        let encode = |text: &str| -> String { text.bytes().map(byte).collect() };
        let pair = |(name, value): &(&str, &str)| format!("{name}={}", encode(value));
        let pairs: Vec<String> = question.iter().map(pair).collect();
        self.get(&format!("/v1/search?{}", pairs.join("&"))).await
    }

    /// One call of `mem_search` over REST.
    pub async fn mem_search(&self, arguments: Value) -> Reply {
        self.post("/v1/mem-search", arguments).await
    }
}

/// An item with a fresh event id.
pub fn item(kind: &str, body: Value) -> Value {
    json!({"event_id": Uuid::now_v7(), "kind": kind, "session": {"host": "claude-code", "id": "s-1"},
        "body": body})
}
