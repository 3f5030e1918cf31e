//! The service over HTTP, as any client would call it.

use anyhow::{Context, bail};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use crate::bench::operation::{Call, Operation};

/// A caller of the service.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
    key: String,
}

impl Api {
    /// A caller with `key`.
    ///
    /// # Errors
    /// If no HTTP client can be made.
    pub fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        // The second call in a process finds it installed, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            url: url.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// If the service does not answer with success, quoting its problem.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = self
            .http
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.key);
        serde_json::from_slice(&send(request).await?.whole()?)
            .with_context(|| format!("the answer of {path}"))
    }

    /// Calls an operation as its own caller.
    ///
    /// # Errors
    /// As [`Self::get`]; also if a part of it was refused.
    pub async fn call(&self, operation: &Operation) -> anyhow::Result<Vec<u8>> {
        self.answer(operation).await?.whole()
    }

    /// The same, of which a part may be refused.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn call_partly(&self, operation: &Operation) -> anyhow::Result<Vec<u8>> {
        Ok(self.answer(operation).await?.body)
    }

    async fn answer(&self, operation: &Operation) -> anyhow::Result<Answer> {
        let (request, body) = match &operation.call {
            Call::Get(path) => (self.http.get(format!("{}{path}", self.url)), None),
            Call::GetAnew(path) => {
                let request = self.http.get(format!("{}{path}", self.url));
                (request.header("Cache-Control", "no-cache"), None)
            }
            Call::Post(path, body) => (
                self.http.post(format!("{}{path}", self.url)),
                Some(body.clone()),
            ),
            Call::Batch(items) => {
                let (body, _) = Operation::batch_body(&operation.project, items);
                (
                    self.http.post(format!("{}/v1/events", self.url)),
                    Some(body),
                )
            }
        };
        let request = within(request, operation);
        send(match body {
            Some(body) => request
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(body),
            None => request,
        })
        .await
    }

    /// Posts JSON as an operation's caller.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn post(
        &self,
        operation: &Operation,
        path: &str,
        body: String,
    ) -> anyhow::Result<Vec<u8>> {
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        let request = request.header(reqwest::header::CONTENT_TYPE, "application/json");
        send(within(request, operation)).await?.whole()
    }
}

/// An answer of success.
struct Answer {
    status: StatusCode,
    path: String,
    body: Vec<u8>,
}

impl Answer {
    /// Its body, unless something of the request was refused.
    fn whole(self) -> anyhow::Result<Vec<u8>> {
        if self.status == StatusCode::MULTI_STATUS {
            let text = String::from_utf8_lossy(&self.body);
            bail!("{}: {} {text}", self.path, self.status);
        }
        Ok(self.body)
    }
}

fn within(request: RequestBuilder, operation: &Operation) -> RequestBuilder {
    request
        .bearer_auth(&operation.key)
        .header("Cairn-Project", operation.encoded_project())
}

async fn send(request: RequestBuilder) -> anyhow::Result<Answer> {
    let response = request.send().await.context("calling the service")?;
    let (status, path) = (response.status(), response.url().path().to_owned());
    let body: Vec<u8> = response.bytes().await.context("reading an answer")?.into();
    if !status.is_success() {
        bail!("{path}: {status} {}", String::from_utf8_lossy(&body));
    }
    Ok(Answer { status, path, body })
}
