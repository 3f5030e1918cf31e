//! Signing in on a page: this machine shows a code, and waits until somebody has let it in, there
//! or on any other machine.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cairn_wire::sign_in::{DeviceAnswer, TokenAnswer};

use super::{DEADLINE, say};
use crate::api::{self, Api};
use crate::cli::Login;
use crate::config;
use crate::exit::Failure;
use crate::tokens::{CLIENT, Tokens};

/// What a person's own client may do, if the person may.
const SCOPES: &str = "memory:read memory:write work:write evidence:read skill:publish";

/// The kind of grant that is asked for (RFC 8628).
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What is added to the pause when the service asks for less.
const SLOWER: Duration = Duration::from_secs(5);

/// Asks to be let in and waits for it.
///
/// # Errors
/// [`Failure::NotSignedIn`] if nobody lets this machine in; [`Failure::Refused`] and the like.
pub fn sign_in(service: &str, how: &Login) -> Result<Tokens, Failure> {
    let api = Api::new(service, None, DEADLINE)?;
    let asked = how.scopes.join(" ");
    let scopes = if asked.is_empty() { SCOPES } else { &asked };
    let machine = nix::unistd::gethostname().unwrap_or_default();
    let machine = machine.to_string_lossy();
    let fields = [
        ("client_id", CLIENT),
        ("scope", scopes),
        ("device_name", &machine),
    ];
    let asked = api.form::<DeviceAnswer>("/oauth/device_authorization", &fields);
    let device = api::block_on(asked)?.map_err(|refusal| Failure::Usage(refusal.to_string()))?;
    show(&device, !how.no_browser && config::has_display());
    api::block_on(wait(&api, &device))
}

/// Says where to go, and opens a browser there if there is a screen to open it on.
fn show(device: &DeviceAnswer, open: bool) {
    let [page, code, both] = [
        &device.verification_uri,
        &device.user_code,
        &device.verification_uri_complete,
    ]
    .map(|text| plain(text));
    say(&format!(
        "Open {page}\nand enter the code  {code}\n\nOr open {both}"
    ));
    let is_web = both.starts_with("https://") || both.starts_with("http://");
    if open && is_web && start_browser(&both) {
        say("A browser opens.");
    }
    say("Waiting; Ctrl-C gives up.");
}

/// Text of the service without characters that a terminal would act on.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn start_browser(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.is_ok()
}

/// Asks at the pace that the service sets, until it has decided or the code is over. A service
/// that is away for a moment is asked again.
async fn wait(api: &Api, device: &DeviceAnswer) -> Result<Tokens, Failure> {
    let end = Instant::now() + Duration::from_secs(device.expires_in);
    let mut pause = Duration::from_secs(device.interval.max(1));
    let fields = [
        ("grant_type", GRANT),
        ("client_id", CLIENT),
        ("device_code", device.device_code.as_str()),
    ];
    let over = |why: &str| Err(Failure::NotSignedIn(why.to_owned()));
    while Instant::now() < end {
        tokio::time::sleep(pause).await;
        match api.form::<TokenAnswer>("/oauth/token", &fields).await {
            Ok(Ok(answer)) => return Ok(Tokens::of(answer)),
            Ok(Err(refusal)) => match refusal.error.as_str() {
                "authorization_pending" => {}
                "slow_down" => pause += SLOWER,
                "access_denied" => return over("this machine was not let in"),
                "expired_token" => break,
                _ => return over(&refusal.to_string()),
            },
            Err(Failure::Unreachable(_) | Failure::Fault(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    over("nobody let this machine in in time")
}
