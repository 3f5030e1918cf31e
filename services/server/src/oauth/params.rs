//! Parameters of sign-in, from an address or from a form: each stands at most once, and an empty
//! one counts as absent (RFC 6749, 3.1).

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use cairn_domain::limits;
use cairn_domain::scope::{Scope, Scopes};
use reqwest::Url;

use super::address::{PublicAddress, USUAL_SCOPES};
use super::error::{OAuthError, Refusal};

/// Scopes that hosts ask for everywhere and that mean nothing here.
const FOREIGN: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// Parameters in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Reads the part of an address behind `?`, or a form.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        // A fragment would begin here, which neither has.
        let text = text.replace('#', "%23");
        let Ok(url) = Url::parse(&format!("http://form/?{text}")) else {
            return Self::default();
        };
        let pairs = url.query_pairs();
        Self(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    /// A parameter that may be absent.
    ///
    /// # Errors
    /// `invalid_request` if it stands twice.
    pub fn find(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        let mut values = self.0.iter().filter(|(known, _)| known == name);
        let first = values.next();
        if values.next().is_some() {
            return Err(OAuthError::invalid_request(format!("{name} stands twice")));
        }
        Ok(first
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty()))
    }

    /// A parameter that must be there.
    ///
    /// # Errors
    /// `invalid_request` if it is absent or stands twice.
    pub fn get(&self, name: &str) -> Result<&str, OAuthError> {
        let absent = || OAuthError::invalid_request(format!("{name} is missing"));
        self.find(name)?.ok_or_else(absent)
    }

    /// What is asked for; what an agent needs if nothing is named.
    ///
    /// # Errors
    /// `invalid_scope` for a name of no scope.
    pub fn scopes(&self) -> Result<Scopes, OAuthError> {
        let usual = || USUAL_SCOPES.into_iter().collect();
        let Some(text) = self.find("scope")? else {
            return Ok(usual());
        };
        let names = text.split_ascii_whitespace();
        let ours = names.filter(|name| !FOREIGN.contains(name));
        let read = ours.map(|name| {
            let unknown = |_| OAuthError::new("invalid_scope", format!("{name:?} is no scope"));
            name.parse::<Scope>().map_err(unknown)
        });
        let scopes = read.collect::<Result<Scopes, _>>()?;
        Ok(if scopes == Scopes::default() {
            usual()
        } else {
            scopes
        })
    }

    /// The address that a token is asked for, if one is named.
    ///
    /// # Errors
    /// `invalid_target` if it is none of this service, or if there are several.
    pub fn resource(&self, address: &PublicAddress) -> Result<Option<String>, OAuthError> {
        let Ok(named) = self.find("resource") else {
            return Err(OAuthError::new("invalid_target", "name one resource"));
        };
        let Some(named) = named else {
            return Ok(None);
        };
        let other = || OAuthError::new("invalid_target", format!("{named:?} is not this service"));
        address.resource(named).map(Some).ok_or_else(other)
    }
}

/// Parameters behind `?`.
pub struct Query(pub Params);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(Params::parse(parts.uri.query().unwrap_or_default())))
    }
}

/// Parameters of a form.
pub struct Form(pub Params);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let kind = request.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("application/x-www-form-urlencoded") {
            let wanted = "Content-Type: application/x-www-form-urlencoded";
            return Err(OAuthError::invalid_request(wanted).into());
        }
        Ok(Self(Params::parse(&text(request.into_body()).await?)))
    }
}

/// A body as text.
///
/// # Errors
/// `invalid_request` for one that is too long, breaks off or is not UTF-8.
pub async fn text(body: Body) -> Result<String, OAuthError> {
    let odd = |what: &str| OAuthError::invalid_request(format!("the body {what}"));
    let bytes = axum::body::to_bytes(body, limits::SIGN_IN_BODY_BYTES).await;
    let bytes = bytes.map_err(|_| odd("is too long or broke off"))?;
    String::from_utf8(bytes.into()).map_err(|_| odd("is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_stands_once() {
        let params = Params::parse("a=1&b=x%20y+z&c=&a=2&d=%23#e");
        assert_eq!(params.get("b"), Ok("x y z"));
        assert_eq!(params.get("d"), Ok("##e"));
        assert_eq!(params.find("c"), Ok(None));
        for absent in ["a", "c", "x"] {
            assert_eq!(
                params.get(absent).expect_err("refused").error,
                "invalid_request"
            );
        }
    }

    #[test]
    fn scopes_are_ours_or_are_refused() {
        let scopes = |text: &str| Params::parse(&format!("scope={text}")).scopes();
        assert_eq!(scopes("").expect("usual").names().len(), 4);
        assert_eq!(
            scopes("openid+offline_access")
                .expect("usual")
                .names()
                .len(),
            4
        );
        let one = scopes("memory:read+openid").expect("one");
        assert_eq!(one.names(), ["memory:read"]);
        assert_eq!(
            scopes("memory:*").expect_err("refused").error,
            "invalid_scope"
        );
    }
}
