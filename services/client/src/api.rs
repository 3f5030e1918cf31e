//! Calls to the service: addresses, headers, deadlines. What comes back is read in `reply`.

use std::time::Duration;

use cairn_wire::context::{ContextAnswer, ContextQuery};
use cairn_wire::session::SessionName;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response};
use serde::Serialize;

use crate::account::Account;
use crate::config;
use crate::exit::Failure;
use crate::reply::{Reply, stopped};
use crate::spool::{Delivery, Service, Trouble};

/// How long a flush waits for the answer to a batch: the service's own limit for a request.
const BATCH_TIME: Duration = Duration::from_secs(30);

/// Bytes of a context that are read; what the client prints of it is far less.
const CONTEXT_BYTES: usize = 1024 * 1024;

/// Bytes of any other answer that are read.
pub const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A refusal of a step of sign-in (RFC 6749, 5.2).
#[derive(Clone, Debug, serde::Deserialize)]
pub struct OAuthRefusal {
    /// Its code.
    pub error: String,
    /// The same in words.
    #[serde(default)]
    pub error_description: String,
}

impl std::fmt::Display for OAuthRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.error_description.as_str() {
            "" => f.write_str(&self.error),
            words => f.write_str(words),
        }
    }
}

/// The service as one caller sees it.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    service: String,
    key: Option<String>,
    project: Option<String>,
    session: Option<String>,
}

impl Api {
    /// Calls to `service`, each answered within `deadline` or failed.
    ///
    /// # Errors
    /// [`Failure::Failed`] if this machine cannot make connections at all.
    pub fn new(
        service: &str,
        account: Option<&Account>,
        deadline: Duration,
    ) -> Result<Self, Failure> {
        // Fails only if it was done before, by an earlier client of this process.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(deadline.min(Duration::from_secs(3)))
            .timeout(deadline)
            // A key must not follow a redirect to somewhere else.
            .redirect(reqwest::redirect::Policy::none());
        if service.starts_with("http://") {
            // No certificates are read from the disk where none is needed.
            builder = builder.tls_certs_only([]).no_proxy();
        }
        let client = builder.build();
        let client =
            client.map_err(|e| Failure::Failed(format!("no connection can be made: {e}")))?;
        Ok(Self {
            client,
            service: service.to_owned(),
            key: account.map(|account| account.key.clone()),
            project: None,
            session: None,
        })
    }

    /// The same calls with this project as the current one.
    #[must_use]
    pub fn within(mut self, project_key: &str) -> Self {
        self.project = Some(percent_encode(project_key));
        self
    }

    /// The same calls in this session.
    #[must_use]
    pub fn in_session(mut self, session: &SessionName) -> Self {
        self.session = Some(percent_encode(&session.to_header()));
        self
    }

    /// The same calls with this account's key.
    #[must_use]
    pub fn signed(&self, account: &Account) -> Self {
        Self {
            key: Some(account.key.clone()),
            ..self.clone()
        }
    }

    /// A GET of `path`, which may carry a query.
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.prepare(self.client.get(format!("{}{path}", self.service)))
    }

    /// A POST of JSON to `path`.
    pub fn post(&self, path: &str, body: Vec<u8>) -> RequestBuilder {
        let request = self
            .client
            .post(format!("{}{path}", self.service))
            .body(body);
        self.prepare(request)
            .header(CONTENT_TYPE, "application/json")
    }

    /// A POST of JSON lines to `path`.
    pub fn post_lines(&self, path: &str, body: Vec<u8>) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.service));
        self.prepare(request.body(body))
            .header(CONTENT_TYPE, "application/x-ndjson")
    }

    /// Posts a form of sign-in: what was asked for, or the service's refusal of it.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], or what the service's problem stands for; [`Failure::Failed`] for
    /// an answer of another form.
    pub async fn form<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Result<T, OAuthRefusal>, Failure> {
        let encoded = |text: &str| percent_encode(text).replace('/', "%2F").replace(':', "%3A");
        let pairs = fields.iter();
        let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value)));
        let request = self.client.post(format!("{}{path}", self.service));
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(pairs.collect::<Vec<_>>().join("&"));
        let reply = Reply::of(request, ANSWER_BYTES).await?;
        let is_refusal = reply.version.is_some() && reply.status.is_client_error();
        if let (true, Ok(refusal)) = (is_refusal, serde_json::from_str(&reply.text)) {
            return Ok(Err(refusal));
        }
        // An empty answer, as to a token that is given back, holds nothing.
        if reply.version.is_some() && reply.status.is_success() && reply.text.is_empty() {
            return read("null").map(Ok);
        }
        read(&reply.content("application/json")?).map(Ok)
    }

    /// A PATCH of `path` with JSON.
    pub fn patch(&self, path: &str, body: Vec<u8>) -> RequestBuilder {
        let request = self.client.patch(format!("{}{path}", self.service));
        self.prepare(request.body(body))
            .header(CONTENT_TYPE, "application/json")
    }

    /// A DELETE of `path`.
    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.prepare(self.client.delete(format!("{}{path}", self.service)))
    }

    /// What a session in the current project starts with, by the clock of this machine.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], or what the service's problem stands for; [`Failure::Failed`] for
    /// an answer of another form.
    pub async fn context(&self, query: &ContextQuery) -> Result<ContextAnswer, Failure> {
        let query = ContextQuery {
            tz: Some(config::time_zone().unwrap_or_else(|| "UTC".to_owned())),
            ..query.clone()
        };
        let request = self.get(&format!("/v1/context?{}", query_string(&query)));
        let request = request.header(ACCEPT, "application/json");
        let reply = Reply::of(request, CONTEXT_BYTES).await?;
        read(&reply.content("application/json")?)
    }

    fn prepare(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(project) = &self.project {
            request = request.header("Cairn-Project", project);
        }
        if let Some(session) = &self.session {
            request = request.header("Cairn-Session", session);
        }
        request
    }

    /// Sends a request and reads the answer's text.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub async fn text(&self, request: RequestBuilder) -> Result<String, Failure> {
        let reply = Reply::of(request, ANSWER_BYTES).await?;
        reply.content("text/plain")
    }

    /// Sends a request whose answer says nothing but that it is done.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub async fn done(&self, request: RequestBuilder) -> Result<(), Failure> {
        let reply = Reply::of(request, ANSWER_BYTES).await?;
        reply.done().map(drop)
    }

    /// Sends a request and reads the answer's JSON.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], or what the service's problem stands for; [`Failure::Failed`] for
    /// an answer of another form.
    pub async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, Failure> {
        let request = request.header(ACCEPT, "application/json");
        let reply = Reply::of(request, ANSWER_BYTES).await?;
        read(&reply.content("application/json")?)
    }
}

fn read<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json)
        .map_err(|e| Failure::Failed(format!("the service's answer cannot be read: {e}")))
}

/// Sends a request whose answer is read part by part.
///
/// # Errors
/// As [`Api::json`].
pub async fn opened(request: RequestBuilder, content_type: &str) -> Result<Response, Failure> {
    let response = request.header(ACCEPT, content_type).send().await;
    let response = response.map_err(|e| Failure::Unreachable(plain_error(&e)))?;
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let is_ours = header("cairn-service").is_some();
    let is_lines = header(CONTENT_TYPE.as_str()).is_some_and(|own| own.starts_with(content_type));
    if response.status().is_success() && is_ours && is_lines {
        return Ok(response);
    }
    Err(Reply::read(response, ANSWER_BYTES)
        .await?
        .content(content_type)
        .err()
        .unwrap_or_else(|| Failure::Unreachable("the answer cannot be read".to_owned())))
}

/// The next part of an answer; `None` at its end.
///
/// # Errors
/// [`Failure::Unreachable`] if it breaks off.
pub async fn next_part(response: &mut Response) -> Result<Option<Vec<u8>>, Failure> {
    let part = response.chunk().await;
    let part = part.map_err(|e| Failure::Unreachable(plain_error(&e)))?;
    Ok(part.map(|bytes| bytes.to_vec()))
}

/// The parameters of a question, as they stand in an address. What is not set is left out.
///
/// # Panics
/// Never: questions are flat objects of texts, numbers and flags.
#[must_use]
pub fn query_string(query: &impl Serialize) -> String {
    let fields = serde_json::to_value(query).expect("texts, numbers and flags serialise");
    let fields = fields.as_object().into_iter().flatten();
    let pairs = fields
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}={}", percent_encode(&text))
        });
    pairs.collect::<Vec<_>>().join("&")
}

impl Service for Api {
    async fn send(&self, body: Vec<u8>) -> Delivery {
        if self.key.is_none() {
            return stopped(Trouble::SignIn, "not signed in".to_owned(), None);
        }
        let request = self.post("/v1/events", body).timeout(BATCH_TIME);
        match Reply::of(request, ANSWER_BYTES).await {
            Ok(reply) => reply.delivery(),
            Err(failure) => stopped(Trouble::Away, failure.to_string(), None),
        }
    }
}

/// What went wrong, without the address, which may be long, and without layers.
#[must_use]
pub fn plain_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Text as it may stand in a header or a query: unreserved characters stay.
#[must_use]
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Runs calls to their end on this thread.
///
/// # Errors
/// [`Failure::Failed`] if the system gives no event queue; else what the calls end with.
pub fn block_on<T>(calls: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| Failure::Failed(format!("no event queue: {e}")))?;
    let result = runtime.block_on(calls);
    // Name resolution runs on threads that may hang; nobody waits for them.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_what_is_set() {
        let query = ContextQuery {
            observations: Some(9),
            show_author: Some(true),
            types: Some("bugfix,feature".to_owned()),
            ..ContextQuery::default()
        };
        assert_eq!(
            query_string(&query),
            "observations=9&show_author=true&types=bugfix%2Cfeature"
        );
    }

    #[test]
    fn keys_travel_percent_encoded() {
        assert_eq!(percent_encode("name:caf\u{e9} 1"), "name:caf%C3%A9%201");
    }
}
