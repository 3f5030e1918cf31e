//! Pages: plain HTML that loads nothing, stands in no frame, and takes forms of its own alone.

pub mod sign_in;
pub mod visitor;

use std::sync::LazyLock;

use askama::Template;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cairn_domain::limits;
use cairn_domain::scope::{Scope, Scopes};
use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::actions::Failure;

/// The one style of all pages. Its hash stands in their policy.
pub const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{margin:0;display:flex;justify-content:center}\
main{width:100%;max-width:30rem;padding:2rem 1rem}\
h1{font-size:1.4rem;overflow-wrap:anywhere}\
label{display:block;margin:1rem 0 .3rem}\
input{font:inherit;width:100%;padding:.5rem;box-sizing:border-box}\
button{font:inherit;padding:.5rem 1rem;margin:1rem .5rem 0 0}\
dt{font-weight:600}dd{margin:0 0 .6rem;overflow-wrap:anywhere}\
.link{border:0;background:none;padding:0;text-decoration:underline;cursor:pointer}\
.small{font-size:.9rem}\
.wrong{border-left:.25rem solid #b45309;padding-left:.75rem}";

static STYLE_HASH: LazyLock<String> =
    LazyLock::new(|| BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes())));

/// A page, as it is sent.
pub struct Page {
    status: StatusCode,
    html: String,
    /// Where the answer to a form of it may lead, beside this service.
    leads_to: Option<String>,
    cookie: Option<String>,
}

impl Page {
    /// A page of this template.
    ///
    /// # Errors
    /// A fault of ours, if the template cannot be filled in.
    pub fn of(template: &impl Template) -> Result<Self, Failure> {
        let html = template.render();
        Ok(Self {
            status: StatusCode::OK,
            html: html.map_err(|error| Failure::fault(format!("a page: {error}")))?,
            leads_to: None,
            cookie: None,
        })
    }

    /// A page that says something and asks nothing.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn message(status: StatusCode, title: &str, text: &str) -> Result<Self, Failure> {
        let page = Self::of(&Message { title, text })?;
        Ok(page.status(status))
    }

    /// The same page with another status.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same page, whose form leads on to a program's address: browsers hold a form to what
    /// its page's policy names, also where the answer leads elsewhere.
    #[must_use]
    pub fn leads_to(mut self, address: &Url) -> Self {
        self.leads_to = Some(match address.scheme() {
            "http" | "https" => address.origin().ascii_serialization(),
            own => format!("{own}:"),
        });
        self
    }

    /// The same page with a cookie.
    #[must_use]
    pub fn cookie(mut self, cookie: Option<String>) -> Self {
        self.cookie = cookie;
        self
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let leads_to = self.leads_to.map(|to| format!(" {to}")).unwrap_or_default();
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; form-action 'self'{leads_to}; \
             base-uri 'none'; frame-ancestors 'none'",
            *STYLE_HASH
        );
        let mut response = (self.status, self.html).into_response();
        let headers = response.headers_mut();
        let fixed: [(HeaderName, &'static str); 6] = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (X_FRAME_OPTIONS, "DENY"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // Forms need their origin; nobody else learns the address.
            (REFERRER_POLICY, "same-origin"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        set_cookie(&mut response, self.cookie.as_deref());
        response
    }
}

/// An answer that leads elsewhere, to be asked for with GET.
///
/// # Errors
/// A fault of ours, if the address cannot stand in a header.
pub fn lead(to: &str, cookie: Option<&str>) -> Result<Response, Failure> {
    let to = HeaderValue::from_str(to);
    let to = to.map_err(|_| Failure::fault("an address that is no header"))?;
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response();
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    set_cookie(&mut response, cookie);
    Ok(response)
}

fn set_cookie(response: &mut Response, cookie: Option<&str>) {
    if let Some(Ok(cookie)) = cookie.map(HeaderValue::from_str) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// A name that a program gave itself, as it may stand on a page: one line, of bounded length,
/// without characters that turn the order of others around.
#[must_use]
pub fn one_line(name: &str) -> String {
    let shown = |c: &char| {
        !c.is_control()
            && !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let name: String = name
        .chars()
        .filter(shown)
        .take(limits::CLIENT_NAME_CHARS)
        .collect();
    let name = name.trim();
    if name.is_empty() {
        "a program without a name".to_owned()
    } else {
        name.to_owned()
    }
}

/// Scopes in words for a person.
#[must_use]
pub fn in_words(scopes: Scopes) -> Vec<&'static str> {
    let words = |scope| match scope {
        Scope::MemoryRead => "read the team's memory",
        Scope::MemoryWrite => "add to the team's memory, and share or delete what is yours",
        Scope::WorkWrite => "write to-do lists",
        Scope::EvidenceRead => "read the original input and output of tool calls",
        Scope::SkillPublish => "publish and retire skills",
        Scope::TenantAdmin => "run the team: members, keys, settings, and what others wrote",
        Scope::TenantOwn => "do what only an owner may, up to deleting the team",
    };
    scopes.iter().map(words).collect()
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loads_nothing_and_escapes_what_it_is_told() {
        let page = Page::message(StatusCode::OK, "<b>", "</p><script>x</script>").expect("filled");
        assert!(
            !page.html.contains("<script") && !page.html.contains("<b>"),
            "{}",
            page.html
        );
        let url = Url::parse("http://127.0.0.1:5555/cb").expect("an address");
        let response = page.leads_to(&url).into_response();
        let policy = &response.headers()[CONTENT_SECURITY_POLICY];
        let policy = policy.to_str().expect("a text");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(
            policy.contains("form-action 'self' http://127.0.0.1:5555;"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line(" A\nB\u{202e}C "), "ABC");
        assert_eq!(one_line("\u{200b}"), "a program without a name");
        assert_eq!(one_line(&"x".repeat(500)).len(), limits::CLIENT_NAME_CHARS);
    }
}
