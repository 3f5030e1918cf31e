//! Signing a browser in: with a one-time code that an admin has made, or at the team's identity
//! provider.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::params::{Form, Query};
use super::visitor::{Visitor, counted};
use super::{Page, lead};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::secret::{Purpose, read_code};
use crate::http::peer::Peer;

/// What somebody reads who tried too many codes.
pub const TOO_MANY: &str = "Too many wrong codes. Wait a minute and try again.";
/// What somebody reads whose form is not from a page of ours.
pub const STALE: &str = "This page was open for too long. Try again.";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    base: &'a str,
    form: String,
    next: &'a str,
    provider: Option<&'a str>,
    wrong: Option<&'a str>,
}

/// The page on which a member signs in, to go on at `next`.
///
/// # Errors
/// A fault of ours.
pub fn page(
    app: &App,
    visitor: &Visitor,
    next: &str,
    wrong: Option<&str>,
) -> Result<Page, Failure> {
    let page = Page::of(&SignInPage {
        base: app.sign_in.address.base_path(),
        form: visitor.form(),
        next: safe(next),
        provider: app.sign_in.provider(),
        wrong,
    })?;
    Ok(page.cookie(visitor.cookie(app)))
}

/// The page by itself.
pub async fn show(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(query): Query,
) -> Result<Page, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let next = query.get("next").unwrap_or_default();
    page(&app, &visitor, next, None)
}

/// Takes a code.
pub async fn enter(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let next = form.get("next").unwrap_or_default().to_owned();
    if !visitor.has_sent(&headers, &form) {
        let page = page(&app, &visitor, &next, Some(STALE))?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    }
    let source = format!("sign-in {}", counted(peer.0));
    if !count(&app, &source).await? {
        let page = page(&app, &visitor, &next, Some(TOO_MANY))?;
        return Ok(page.status(StatusCode::TOO_MANY_REQUESTS).into_response());
    }
    let code = read_code(form.get("code").unwrap_or_default());
    let hash = Purpose::SignIn.hash(&code);
    let mut tx = app.store.system("pages.find_sign_in_code").await?;
    let tenant = tx.find_code(hash).await?;
    tx.commit().await?;
    let member = match tenant {
        Some(tenant) => {
            let mut tx = app.store.tenant(tenant, "pages.redeem_code").await?;
            let member = tx.redeem_sign_in_code(hash, app.clock.now()).await?;
            tx.commit().await?;
            member.map(|member| (tenant, member))
        }
        None => None,
    };
    let Some((tenant, member)) = member else {
        let wrong = "This code is wrong, was used before, or is over its time.";
        let page = page(&app, &visitor, &next, Some(wrong))?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    forgive(&app, &source).await?;
    visitor.sign_out(&app).await?;
    let cookie = Visitor::sign_in(&app, tenant, member.member).await?;
    lead(&outside(&app, &next), Some(&cookie))
}

/// Signs the browser out.
pub async fn leave(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    if visitor.has_sent(&headers, &form) {
        visitor.sign_out(&app).await?;
    }
    lead(&outside(&app, form.get("next").unwrap_or_default()), None)
}

/// Counts an attempt at a code; whether it may be looked at.
///
/// # Errors
/// If the store is unavailable: then no code is looked at.
pub async fn count(app: &App, source: &str) -> Result<bool, Failure> {
    let mut tx = app.store.system("pages.count_attempt").await?;
    let may = tx.count_attempt(source, app.clock.now()).await?;
    tx.commit().await?;
    Ok(may)
}

/// Takes back an attempt that was right.
///
/// # Errors
/// If the store is unavailable.
pub async fn forgive(app: &App, source: &str) -> Result<(), Failure> {
    let mut tx = app.store.system("pages.forgive_attempt").await?;
    tx.forgive_attempt(source).await?;
    Ok(tx.commit().await?)
}

/// Where to go on: only at a page of ours that asks something.
#[must_use]
pub fn safe(next: &str) -> &str {
    let is_plain = next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    let is_ours =
        next == "/device" || next.starts_with("/device?") || next.starts_with("/oauth/authorize?");
    if is_plain && is_ours { next } else { "/device" }
}

/// The same as seen from outside.
#[must_use]
pub fn outside(app: &App, next: &str) -> String {
    format!("{}{}", app.sign_in.address.base_path(), safe(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_away_after_signing_in() {
        for ours in [
            "/device?user_code=BCDF-GHJK",
            "/oauth/authorize?client_id=x",
        ] {
            assert_eq!(safe(ours), ours);
        }
        for other in [
            "",
            "//evil.example",
            "https://evil.example/device",
            "/\\evil",
            "/v1/me",
            "/device\r\nx",
        ] {
            assert_eq!(safe(other), "/device", "{other}");
        }
    }
}
