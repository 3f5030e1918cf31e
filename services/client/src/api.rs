//! Calls to the service: addresses, headers, deadlines, and problems read back.

use std::time::Duration;

use cairn_wire::Code;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};

use crate::account::Account;
use crate::config;
use crate::exit::Failure;
use crate::problem::Problem;
use crate::spool::{Answer, Delivery, Service, Stop, Trouble};

/// How long a flush waits for the answer to a batch: the service's own limit for a request.
const BATCH_TIME: Duration = Duration::from_secs(30);

/// Bytes of a context that are read; what the client prints of it is far less.
const CONTEXT_BYTES: usize = 1024 * 1024;

/// Bytes of any other answer that are read.
pub const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// What is said of an answer that something else has given.
const NOT_CAIRN: &str = "what answers there is no Cairn service";

/// The service as one caller sees it.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    service: String,
    key: Option<String>,
    project: Option<String>,
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
        })
    }

    /// The same calls with this project as the current one.
    #[must_use]
    pub fn within(mut self, project_key: &str) -> Self {
        self.project = Some(percent_encode(project_key));
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

    /// What a session in the current project starts with.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], or what the service's problem stands for.
    pub async fn context(&self) -> Result<String, Failure> {
        let zone = config::time_zone().unwrap_or_else(|| "UTC".to_owned());
        let path = format!("/v1/context?tz={}", percent_encode(&zone));
        let request = self.get(&path).header(ACCEPT, "text/plain");
        let reply = Reply::of(request, CONTEXT_BYTES).await?;
        reply.content("text/plain")
    }

    fn prepare(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(project) = &self.project {
            request = request.header("Cairn-Project", project);
        }
        request
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
        let text = reply.content("application/json")?;
        serde_json::from_str(&text)
            .map_err(|e| Failure::Failed(format!("the service's answer cannot be read: {e}")))
    }
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

/// An answer, read to its end.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: StatusCode,
    /// The content type, without parameters.
    pub content_type: String,
    /// The service's version; `None` if something else has answered.
    pub version: Option<String>,
    /// The body.
    pub text: String,
    retry_after: Option<Duration>,
}

impl Reply {
    /// Sends a request and reads what comes back, at most `limit` bytes of it.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] without an answer, and for one that is longer.
    pub async fn of(request: RequestBuilder, limit: usize) -> Result<Self, Failure> {
        let mut response = request.send().await.map_err(unreachable)?;
        let header = |name: &str| find_header(response.headers(), name);
        let content_type = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default();
        let mut reply = Self {
            status: response.status(),
            content_type: content_type.trim().to_lowercase(),
            version: header("cairn-service"),
            retry_after: header(RETRY_AFTER.as_str()).and_then(|text| parse_retry_after(&text)),
            text: String::new(),
        };
        reply.text = read_body(&mut response, limit).await?;
        Ok(reply)
    }

    /// The content of an answer that is the service's and of this type.
    fn content(self, content_type: &str) -> Result<String, Failure> {
        let ours = self.version.is_some();
        if !self.status.is_success() {
            return Err(match Problem::parse(&self.text).filter(|_| ours) {
                Some(problem) => Failure::of(problem),
                None if ours => Failure::of(Problem::of_status(self.status.as_u16())),
                None => Failure::Unreachable(self.stranger()),
            });
        }
        if ours && self.content_type == content_type {
            Ok(self.text)
        } else {
            Err(Failure::Unreachable(NOT_CAIRN.to_owned()))
        }
    }

    /// What is said of an answer that is not the service's.
    #[must_use]
    pub fn stranger(&self) -> String {
        format!("{NOT_CAIRN} (HTTP {})", self.status.as_u16())
    }

    /// What the answer means for a batch. Only the service itself can take or refuse a record;
    /// something before it can ask for less or for patience.
    fn delivery(self) -> Delivery {
        let status = self.status.as_u16();
        let problem = Problem::parse(&self.text).filter(|_| self.version.is_some());
        let words = |reply: &Self| match (&problem, &reply.version) {
            (Some(problem), _) => problem.text(),
            (None, Some(_)) => Problem::of_status(status).text(),
            (None, None) => reply.stranger(),
        };
        let why = words(&self);
        let quota = |problem: &Problem| problem.is(Code::QuotaExceeded);
        match (status, self.version) {
            (413, _) => Delivery::TooLarge,
            (429 | 503, _) => stopped(Trouble::Busy, why, self.retry_after),
            (200..300, version @ Some(_)) => match serde_json::from_str::<Answer>(&self.text) {
                Ok(answer) => Delivery::Answered { answer, version },
                Err(_) => stopped(Trouble::Away, "the answer cannot be read".to_owned(), None),
            },
            (403, Some(_)) if problem.as_ref().is_some_and(quota) => {
                stopped(Trouble::Busy, why, self.retry_after)
            }
            (401 | 403, Some(_)) => stopped(Trouble::SignIn, why, self.retry_after),
            (400 | 422, Some(_)) if problem.is_some() => Delivery::Unreadable(why),
            (500, version @ Some(_)) => Delivery::Fault { why, version },
            _ => stopped(Trouble::Away, why, self.retry_after),
        }
    }
}

async fn read_body(response: &mut Response, limit: usize) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > limit {
            let why = format!("the answer is longer than {limit} bytes");
            return Err(Failure::Unreachable(why));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    })
}

fn stopped(trouble: Trouble, why: String, retry_after: Option<Duration>) -> Delivery {
    Delivery::Stopped(Stop {
        trouble,
        why,
        retry_after,
    })
}

fn find_header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// Seconds or a date.
fn parse_retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = chrono::DateTime::parse_from_rfc2822(text.trim()).ok()?;
    (at.to_utc() - chrono::Utc::now()).to_std().ok()
}

fn unreachable(error: reqwest::Error) -> Failure {
    Failure::Unreachable(plain_error(&error))
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
    fn keys_travel_percent_encoded() {
        assert_eq!(percent_encode("name:caf\u{e9} 1"), "name:caf%C3%A9%201");
    }

    #[test]
    fn a_wait_is_read_from_seconds_and_dates() {
        assert_eq!(parse_retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(parse_retry_after("Mon, 01 Jan 2001 00:00:00 GMT"), None);
        assert_eq!(parse_retry_after("soon"), None);
    }
}
