//! Devices: a terminal asks to be let in, and a member does so on a page, on any machine
//! (RFC 8628).

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use cairn_domain::limits;
use cairn_store::before_sign_in::{Begun, DeviceRequest, WaitingDevice};
use cairn_store::sign_in::SignedIn;
use cairn_wire::sign_in::DeviceAnswer;

use super::client::{Client, admit};
use super::error::{OAuthError, Refusal, unkept};
use super::page::visitor::{Visitor, counted};
use super::page::{Page, in_words, one_line, sign_in};
use super::params::{Form, Query};
use crate::actions::Failure;
use crate::app::App;
use crate::auth::secret::{self, Purpose, read_code};
use crate::http::peer::Peer;

/// Letters of a code that a person types: 34 bits, good for ten minutes, a few tries a minute.
const USER_CODE_LETTERS: usize = 8;
/// After which time a device may find fewer others waiting.
const CROWD_PAUSE: Duration = Duration::from_secs(60);
/// Codes that are drawn if one is taken.
const DRAWS: u32 = 5;
/// What somebody reads whose code leads nowhere.
const WRONG_CODE: &str = "No device waits under this code. Codes are good for ten minutes.";

/// Lets a device ask, and gives it a code for its user to type.
#[utoipa::path(post, path = "/oauth/device_authorization", tag = "sign-in",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = DeviceAnswer), (status = "4XX", body = OAuthError)))]
pub async fn begin(
    State(app): State<Arc<App>>,
    peer: Peer,
    Form(form): Form,
) -> Result<Response, Refusal> {
    admit(&app, peer).await?;
    let client = Client::find(&app, peer, form.get("client_id")?).await?;
    let address = &app.sign_in.address;
    let resource = form.resource(address)?;
    let resource = resource.unwrap_or_else(|| address.url().to_owned());
    let device = form.find("device_name")?.map(one_line);
    let (scopes, source, now) = (form.scopes()?, counted(peer.0), app.clock.now());
    for _ in 0..DRAWS {
        let (device_code, user_code) = (secret::fresh(), secret::code(USER_CODE_LETTERS));
        let new = DeviceRequest {
            device_hash: Purpose::Approval.hash(&device_code),
            user_hash: Purpose::UserCode.hash(&user_code),
            client_id: &client.id,
            client_name: &client.name,
            device: device.as_deref(),
            scopes,
            resource: &resource,
            source: &source,
            now,
        };
        let mut tx = app.store.system("oauth.begin_device").await?;
        let begun = tx.add_device_request(&new).await?;
        tx.commit().await?;
        match begun {
            Begun::Taken => continue,
            Begun::Crowded => {
                let why = "too many devices of this address wait to be let in";
                return Err(OAuthError::too_fast(why, CROWD_PAUSE).into());
            }
            Begun::Waits => {}
        }
        return Ok(unkept(Json(DeviceAnswer {
            verification_uri: address.at("/device"),
            verification_uri_complete: address.at(&format!("/device?user_code={user_code}")),
            device_code,
            user_code,
            expires_in: limits::DEVICE_CODE_TIME.as_secs(),
            interval: limits::DEVICE_PAUSE.as_secs(),
        })));
    }
    Err(Failure::fault("no free user code was drawn").into())
}

#[derive(Template)]
#[template(path = "device.html")]
struct EnterCode<'a> {
    base: &'a str,
    handle: &'a str,
    tenant: &'a str,
    wrong: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "device_confirm.html")]
struct Confirm<'a> {
    base: &'a str,
    form: String,
    next: &'a str,
    user_code: &'a str,
    client: &'a str,
    device: &'a str,
    handle: &'a str,
    tenant: &'a str,
    scopes: Vec<&'static str>,
}

/// Asks the member who is signed in for a code, then whether its device may come in.
#[utoipa::path(get, path = "/device", tag = "sign-in",
    params(("user_code" = Option<String>, Query)),
    responses((status = 200, description = "A page", content_type = "text/html")))]
pub async fn show(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Query(query): Query,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let typed = query.get("user_code").ok().map(read_code);
    let here = match &typed {
        Some(code) => format!("/device?user_code={code}"),
        None => "/device".to_owned(),
    };
    let Some((_, member)) = &visitor.signed_in else {
        return Ok(sign_in::page(&app, &visitor, &here, None)?.into_response());
    };
    let Some(code) = typed else {
        return Ok(ask(&app, member, None)?.into_response());
    };
    match look(&app, peer, &code).await? {
        Looked::Waits(device) => {
            let page = Page::of(&Confirm {
                base: app.sign_in.address.base_path(),
                form: visitor.form(),
                next: &here,
                user_code: &code,
                client: &device.client_name,
                device: device.device.as_deref().unwrap_or("not said"),
                handle: &member.handle,
                tenant: &member.tenant_name,
                scopes: in_words(device.scopes.and(member.role.scopes())),
            })?;
            Ok(page.into_response())
        }
        other => other.refuse(&app, member),
    }
}

/// Takes the member's answer.
pub async fn decide(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Failure> {
    let visitor = Visitor::of(&app, &headers).await?;
    let code = read_code(form.get("user_code").unwrap_or_default());
    let (true, Some((tenant, member))) = (visitor.has_sent(&headers, &form), &visitor.signed_in)
    else {
        let here = format!("/device?user_code={code}");
        let page = sign_in::page(&app, &visitor, &here, None)?;
        return Ok(page.status(StatusCode::FORBIDDEN).into_response());
    };
    let looked = look(&app, peer, &code).await?;
    let Looked::Waits(device) = looked else {
        return looked.refuse(&app, member);
    };
    let (hash, now) = (Purpose::UserCode.hash(&code), app.clock.now());
    let scopes = device.scopes.and(member.role.scopes());
    let done = if form.get("decision") == Ok("allow") {
        let mut tx = app.store.tenant(*tenant, "oauth.approve_device").await?;
        let done = tx.approve_device(hash, member.member, scopes, now).await?;
        tx.commit().await?;
        let mut tx = app.store.system("oauth.use_client").await?;
        tx.use_client(&device.client_id, now).await?;
        tx.commit().await?;
        done.then_some((
            "It is in",
            "Go back to your terminal; you can close this page.",
        ))
    } else {
        let mut tx = app.store.system("oauth.deny_device").await?;
        let done = tx.deny_device_request(hash, now).await?;
        tx.commit().await?;
        done.then_some(("It stays out", "The device was told so."))
    };
    match done {
        Some((title, text)) => Ok(Page::message(StatusCode::OK, title, text)?.into_response()),
        None => Looked::Nothing.refuse(&app, member),
    }
}

/// What is found under a code.
enum Looked {
    Waits(WaitingDevice),
    Nothing,
    TooMany,
}

impl Looked {
    fn refuse(self, app: &App, member: &SignedIn) -> Result<Response, Failure> {
        let (status, wrong) = match self {
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, sign_in::TOO_MANY),
            _ => (StatusCode::BAD_REQUEST, WRONG_CODE),
        };
        Ok(ask(app, member, Some(wrong))?
            .status(status)
            .into_response())
    }
}

fn ask(app: &App, member: &SignedIn, wrong: Option<&str>) -> Result<Page, Failure> {
    Page::of(&EnterCode {
        base: app.sign_in.address.base_path(),
        handle: &member.handle,
        tenant: &member.tenant_name,
        wrong,
    })
}

/// Looks for a device, unless too many wrong codes came from the address.
async fn look(app: &App, peer: Peer, code: &str) -> Result<Looked, Failure> {
    let source = format!("device {}", counted(peer.0));
    if !sign_in::count(app, &source).await? {
        return Ok(Looked::TooMany);
    }
    let mut tx = app.store.system("oauth.find_device").await?;
    let hash = Purpose::UserCode.hash(code);
    let found = tx.find_device_request(hash, app.clock.now()).await?;
    tx.commit().await?;
    let Some(found) = found else {
        return Ok(Looked::Nothing);
    };
    sign_in::forgive(app, &source).await?;
    Ok(Looked::Waits(found))
}
