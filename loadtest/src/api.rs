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
        serde_json::from_slice(&send(request).await?)
            .with_context(|| format!("the answer of {path}"))
    }

    /// Calls an operation as its own caller.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn call(&self, operation: &Operation) -> anyhow::Result<Vec<u8>> {
        match &operation.call {
            Call::Get(path) => {
                let request = self.http.get(format!("{}{path}", self.url));
                send(within(request, operation)).await
            }
            Call::GetAnew(path) => {
                let request = self.http.get(format!("{}{path}", self.url));
                send(within(request, operation).header("Cache-Control", "no-cache")).await
            }
            Call::Post(path, body) => self.post(operation, path, body.clone()).await,
            Call::Batch(items) => {
                let (body, _) = Operation::batch_body(&operation.project, items);
                self.post(operation, "/v1/events", body).await
            }
        }
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
        send(within(request, operation)).await
    }
}

fn within(request: RequestBuilder, operation: &Operation) -> RequestBuilder {
    request
        .bearer_auth(&operation.key)
        .header("Cairn-Project", operation.encoded_project())
}

async fn send(request: RequestBuilder) -> anyhow::Result<Vec<u8>> {
    let response = request.send().await.context("calling the service")?;
    let (status, path) = (response.status(), response.url().path().to_owned());
    let body = response.bytes().await.context("reading an answer")?;
    // 207 says that something of the request was refused.
    if !status.is_success() || status == StatusCode::MULTI_STATUS {
        bail!("{path}: {status} {}", String::from_utf8_lossy(&body));
    }
    Ok(body.into())
}
