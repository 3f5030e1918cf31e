//! Reply: what came back for a request, read within bounds, and whether it is Cairn's at all.
//!
//! Something between here and the service may answer in its place; its words are no memory.

use std::time::Duration;

use cairn_wire::Code;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};

use crate::api::plain_error;
use crate::exit::Failure;
use crate::problem::Problem;
use crate::spool::{Answer, Delivery, Stop, Trouble};

/// What is said of an answer that something else has given.
const NOT_CAIRN: &str = "what answers there is no Cairn service";

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
        let response = request.send().await.map_err(unreachable)?;
        Self::read(response, limit).await
    }

    /// Reads what came back for a request, at most `limit` bytes of it.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub async fn read(mut response: Response, limit: usize) -> Result<Self, Failure> {
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
    ///
    /// # Errors
    /// [`Failure::Unreachable`] for anybody else's, or what the service's problem stands for.
    pub fn content(self, content_type: &str) -> Result<String, Failure> {
        let reply = self.done()?;
        if reply.content_type == content_type {
            Ok(reply.text)
        } else {
            Err(Failure::Unreachable(NOT_CAIRN.to_owned()))
        }
    }

    /// The answer, if it is the service's and says that it did what was asked.
    ///
    /// # Errors
    /// As [`Self::content`].
    pub fn done(self) -> Result<Self, Failure> {
        let ours = self.version.is_some();
        match self.status.is_success() {
            true if ours => Ok(self),
            true => Err(Failure::Unreachable(NOT_CAIRN.to_owned())),
            false => Err(match Problem::parse(&self.text).filter(|_| ours) {
                Some(problem) => Failure::of(problem),
                None if ours => Failure::of(Problem::of_status(self.status.as_u16())),
                None => Failure::Unreachable(self.stranger()),
            }),
        }
    }

    /// What is said of an answer that is not the service's.
    #[must_use]
    pub fn stranger(&self) -> String {
        format!("{NOT_CAIRN} (HTTP {})", self.status.as_u16())
    }

    /// What the answer means for a batch. Only the service itself can take or refuse a record;
    /// something before it can ask for less or for patience.
    #[must_use]
    pub fn delivery(self) -> Delivery {
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

/// A delivery that was not taken.
pub fn stopped(trouble: Trouble, why: String, retry_after: Option<Duration>) -> Delivery {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_seconds_and_dates() {
        assert_eq!(parse_retry_after("2"), Some(Duration::from_secs(2)));
        assert_eq!(parse_retry_after("Mon, 01 Jan 2001 00:00:00 GMT"), None);
        assert_eq!(parse_retry_after("soon"), None);
    }
}
