//! A call of the service without a network between, so that nothing holds bodies back but those who
//! give and take them: part by part.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response, StatusCode};
use cairn_server::http::router;
use http_body_util::BodyExt;
use hyper::body::Frame;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde_json::Value;
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::{Caller, TestApp};

/// An answer whose body is taken part by part; dropping it is going away.
pub struct Steps(Response<Body>);

impl Steps {
    /// Calls with a body.
    pub async fn call(
        app: &TestApp,
        caller: &Caller,
        method: &str,
        path: &str,
        body: Body,
    ) -> Self {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "127.0.0.1")
            .header(AUTHORIZATION, format!("Bearer {}", caller.key()))
            .header(CONTENT_TYPE, "application/x-ndjson")
            .body(body)
            .expect("a request");
        let answer = router(app.app.clone()).oneshot(request).await;
        Self(answer.expect("an answer"))
    }

    /// Opens an export.
    pub async fn export(app: &TestApp, caller: &Caller, question: &str) -> Self {
        let path = format!("/v1/export?{question}");
        Self::call(app, caller, "GET", &path, Body::empty()).await
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// A header of the answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.0.headers().get(name)?;
        Some(value.to_str().expect("a text"))
    }

    /// The next part; none after the last.
    ///
    /// # Errors
    /// If the body is broken off.
    pub async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        let frame = self.0.body_mut().frame().await?;
        Some(frame.map(|frame| frame.into_data().expect("data")))
    }

    /// All that is left, as text, and whether the body ended rather than broke off.
    pub async fn rest(&mut self) -> (String, bool) {
        let mut text = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(part)) => text.extend(part),
                ended => break (String::from_utf8(text).expect("a text"), ended.is_none()),
            }
        }
    }

    /// The code of a problem.
    pub async fn code(mut self) -> String {
        let (text, _) = self.rest().await;
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        body["code"].as_str().expect("a problem").to_owned()
    }
}

/// A body that is given part by part, and ends when its sender is dropped.
pub fn piecewise() -> (mpsc::UnboundedSender<String>, Body) {
    let (parts, given) = mpsc::unbounded_channel();
    (parts, Body::new(Pieces(given)))
}

struct Pieces(mpsc::UnboundedReceiver<String>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|part| Ok(Frame::data(part.into()))))
    }
}
