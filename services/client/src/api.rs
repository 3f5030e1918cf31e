//! Calls to the service: addresses, headers, deadlines, and problems read back.

use std::time::Duration;

use cairn_wire::events::BatchAnswer;
use cairn_wire::{Code, Problem};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};

use crate::account::Account;
use crate::config;
use crate::exit::Failure;
use crate::spool::{Delivery, Service, Stop, Trouble};

/// How long a flush waits for the answer to a batch: the service's own limit for a request.
const BATCH_TIME: Duration = Duration::from_secs(30);

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
    /// As [`Api::text`].
    pub async fn context(&self) -> Result<String, Failure> {
        let zone = config::time_zone().unwrap_or_else(|| "UTC".to_owned());
        let path = format!("/v1/context?tz={}", percent_encode(&zone));
        self.text(self.get(&path).header(ACCEPT, "text/plain"))
            .await
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

    /// Sends a request and reads the answer's text.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], or what the service's problem stands for.
    pub async fn text(&self, request: RequestBuilder) -> Result<String, Failure> {
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        if status.is_success() {
            Ok(text)
        } else {
            Err(Failure::of(read_problem(status, &text)))
        }
    }

    /// Sends a request and reads the answer's JSON.
    ///
    /// # Errors
    /// As [`Api::text`]; [`Failure::Failed`] for an answer of another form.
    pub async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, Failure> {
        let text = self
            .text(request.header(ACCEPT, "application/json"))
            .await?;
        serde_json::from_str(&text)
            .map_err(|e| Failure::Failed(format!("the service's answer cannot be read: {e}")))
    }
}

impl Service for Api {
    async fn send(&self, body: Vec<u8>) -> Delivery {
        if self.key.is_none() {
            return stopped(Trouble::SignIn, "not signed in".to_owned(), None);
        }
        let response = self
            .post("/v1/events", body)
            .timeout(BATCH_TIME)
            .send()
            .await;
        match response {
            Ok(response) => read_delivery(response).await,
            Err(e) => stopped(Trouble::Away, plain_error(&e), None),
        }
    }
}

async fn read_delivery(response: Response) -> Delivery {
    let status = response.status();
    let header = |name: &str| find_header(response.headers(), name);
    let version = header("cairn-service");
    let retry_after = header(RETRY_AFTER.as_str()).and_then(|text| parse_retry_after(&text));
    let text = match response.text().await {
        Ok(text) => text,
        Err(e) => return stopped(Trouble::Away, plain_error(&e), None),
    };
    if status.is_success() {
        return match serde_json::from_str::<BatchAnswer>(&text) {
            Ok(answer) => Delivery::Answered { answer, version },
            Err(_) => stopped(Trouble::Away, "the answer cannot be read".to_owned(), None),
        };
    }
    let problem = read_problem(status, &text);
    let why = problem.text();
    match status.as_u16() {
        403 if problem.code == Code::QuotaExceeded => stopped(Trouble::Busy, why, retry_after),
        401 | 403 => stopped(Trouble::SignIn, why, retry_after),
        413 => Delivery::TooLarge,
        400 | 422 => Delivery::Unreadable(why),
        500 => Delivery::Fault { why, version },
        429 | 503 => stopped(Trouble::Busy, why, retry_after),
        _ => stopped(Trouble::Away, why, retry_after),
    }
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

/// The problem that a failed answer holds. What is no problem document comes from something
/// between here and the service.
fn read_problem(status: StatusCode, text: &str) -> Problem {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let code = match status.as_u16() {
            401 => Code::Unauthenticated,
            429 => Code::RateLimited,
            500 => Code::Internal,
            _ => Code::StoreUnavailable,
        };
        let mut problem = Problem::new(code, format!("HTTP {}", status.as_u16()));
        problem.title = format!("HTTP {}", status.as_u16());
        problem
    })
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
