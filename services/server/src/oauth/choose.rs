//! Choosing a team: somebody whom the identity provider has signed in, and whose address several
//! teams have added, says which one they mean. No team learns of another by it: the page is shown
//! to the owner of the address alone.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use cairn_domain::limits;
use cairn_store::before_sign_in::ByEmail;
use cairn_store::page_cursor::PageScope;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::directory::{self, Entrance};
use super::oidc;
use super::page::visitor::Visitor;
use super::page::{Page, sign_in};
use super::params::Form;
use crate::actions::Failure;
use crate::app::App;

/// What offers are sealed as.
const OFFER: &str = "choose a team";

/// That the provider has signed somebody in, as it is sealed for their browser: any replica takes
/// the next step, and nothing is kept.
#[derive(Serialize, Deserialize)]
struct Offer {
    email: String,
    until: DateTime<Utc>,
}

impl Offer {
    fn seal(app: &App, visitor: &Visitor, email: &str) -> String {
        let offer = Self {
            email: email.to_owned(),
            until: app.clock.now() + limits::TEAM_CHOICE_TIME,
        };
        let scope = PageScope::before_sign_in(OFFER, visitor.secret());
        app.continuations.ring().seal_page(&scope, &offer)
    }

    /// The address in an offer that was made to this browser and is not over.
    fn open(app: &App, visitor: &Visitor, sealed: &str) -> Option<String> {
        let scope = PageScope::before_sign_in(OFFER, visitor.secret());
        let offer: Self = app.continuations.ring().read_page(&scope, sealed)?;
        (offer.until > app.clock.now()).then_some(offer.email)
    }
}

#[derive(Template)]
#[template(path = "choose.html")]
struct Choose<'a> {
    base: &'a str,
    form: String,
    next: &'a str,
    offer: String,
    email: &'a str,
    teams: Vec<Team<'a>>,
}

struct Team<'a> {
    id: Uuid,
    name: &'a str,
    handle: &'a str,
}

/// The page that asks which of these members somebody wants to be, to go on at `next`.
///
/// # Errors
/// A fault of ours.
pub fn page(
    app: &App,
    visitor: &Visitor,
    email: &str,
    members: &[ByEmail],
    next: &str,
) -> Result<Page, Failure> {
    let teams = members.iter().map(|member| Team {
        id: member.tenant.uuid(),
        name: &member.tenant_name,
        handle: &member.handle,
    });
    Page::of(&Choose {
        base: app.sign_in.address.base_path(),
        form: visitor.form(),
        next: sign_in::safe(next),
        offer: Offer::seal(app, visitor, email),
        email,
        teams: teams.collect(),
    })
}

/// Takes the answer. Who is a member of what is looked up anew.
pub async fn decide(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let next = form.get("next").unwrap_or_default();
    let offered = Offer::open(&app, &visitor, form.get("offer").unwrap_or_default());
    let (Some(oidc), Some(email), true) = (
        &app.sign_in.oidc,
        offered,
        visitor.has_sent(&headers, &form),
    ) else {
        let page = sign_in::page(&app, &visitor, next, Some(sign_in::STALE))?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    let members = match directory::enter(&app, &email, oidc.domains()).await? {
        Entrance::Members(members) => members,
        Entrance::New(tenant, member) => {
            return oidc::enter(&app, &visitor, (tenant, member), next).await;
        }
        Entrance::Refused(why) => return oidc::refuse(&email, why),
    };
    let wanted = form.get("team").ok().and_then(|id| id.parse::<Uuid>().ok());
    let chosen = members.iter().find(|it| Some(it.tenant.uuid()) == wanted);
    match chosen {
        Some(one) => oidc::enter(&app, &visitor, (one.tenant, one.member), next).await,
        // Removed meanwhile, or never there.
        None => {
            let page = page(&app, &visitor, &email, &members, next)?;
            Ok(page.status(StatusCode::FORBIDDEN).into_response())
        }
    }
}
