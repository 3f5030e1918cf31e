//! Signing in and out.

use std::io::Read;
use std::time::Duration;

use cairn_wire::auth::Me;

use super::{Client, DEADLINE, device, say};
use crate::account::{self, Account, Credential, Tenants};
use crate::api::{self, Api};
use crate::cli::Login;
use crate::config;
use crate::exit::Failure;
use crate::tokens::Tokens;

/// Bytes of standard input that may hold a key.
const KEY_INPUT: u64 = 4_096;

/// How long the service may take to end a sign-in.
const REVOKE_TIME: Duration = Duration::from_secs(5);

/// Signs in: on a page, or with a key from standard input. Has the service confirm it, and keeps
/// it.
pub fn login(client: &Client, how: &Login) -> Result<(), Failure> {
    let service = match &how.url {
        Some(url) => config::parse_url(url)
            .ok_or_else(|| Failure::Usage("--url must be an http or https address".to_owned()))?,
        None => client.settings.service()?.to_owned(),
    };
    let (credential, shown) = if how.key {
        let key = read_key()?;
        let account = Account::of_key(&client.dirs, &service, &key);
        (Credential::Key(key), account)
    } else {
        let tokens = device::sign_in(&service, how)?;
        let nobody = Account::of_key(&client.dirs, &service, "");
        (Credential::Tokens(tokens.clone()), nobody.with(tokens))
    };
    let api = Api::new(&service, Some(&shown), DEADLINE)?;
    let me: Me = api::block_on(api.json(api.get("/v1/me")))?;
    let before = account::save(&client.dirs, &service, &credential, &me)?;
    say(&format!(
        "Signed in to {service} as {} of {}.",
        me.handle, me.tenant
    ));
    // What nobody holds any more must not stay good; that it ends by itself is good enough.
    if let Some(tokens) = before.as_ref().and_then(Account::tokens) {
        drop(revoke(&service, tokens));
    }
    if client.settings.api_key.is_some() {
        say("CAIRN_API_KEY is set and goes before this.");
    }
    Ok(())
}

fn read_key() -> Result<String, Failure> {
    let mut key = String::new();
    let read = std::io::stdin().take(KEY_INPUT).read_to_string(&mut key);
    read.map_err(|e| Failure::Unreadable(format!("standard input: {e}")))?;
    let key = key.trim();
    if account::is_key(key) {
        return Ok(key.to_owned());
    }
    let wanted = "standard input must hold a key of the form cairn_<id>_<secret>";
    Err(Failure::Usage(wanted.to_owned()))
}

/// Ends the sign-in at the service in force, or forgets its key.
pub fn logout(client: &Client) -> Result<(), Failure> {
    let service = client.settings.service()?;
    let before = account::remove(&client.dirs, service)?;
    if client.settings.api_key.is_some() {
        say("CAIRN_API_KEY is still set.");
    }
    match &before {
        None => say(&format!("Nobody was signed in at {service}.")),
        Some(account) => match account.tokens() {
            None => say(&format!(
                "Signed out of {service}. The key itself stays valid."
            )),
            Some(tokens) => {
                revoke(service, tokens).map_err(|failure| {
                    let why = "signed out here, but the service was not told: \
                        the sign-in ends there in 30 days";
                    Failure::Unreachable(format!("{failure}; {why}"))
                })?;
                say(&format!("Signed out of {service}."));
            }
        },
    }
    Ok(())
}

/// Has the service end a sign-in.
fn revoke(service: &str, tokens: &Tokens) -> Result<(), Failure> {
    let api = Api::new(service, None, REVOKE_TIME)?;
    let fields = [("token", tokens.refresh.as_str())];
    let done = api::block_on(api.form::<Option<()>>("/oauth/revoke", &fields))?;
    done.map(drop)
        .map_err(|refusal| Failure::Failed(refusal.to_string()))
}

/// Prints whom the service takes the caller for.
pub fn whoami(client: &Client) -> Result<(), Failure> {
    let api = client.api()?;
    let me: Me = api::block_on(api.json(api.get("/v1/me")))?;
    let account = client.account(client.settings.service()?);
    if let Some(account) = &account {
        let tenants = Tenants::of(&client.dirs, client.settings.service()?);
        tenants.note(&account.key_id, &me.tenant);
    }
    let ends = match account.as_ref().and_then(Account::tokens) {
        Some(_) => "Signed in until",
        None => "Key expires",
    };
    let role = me.role.as_deref().unwrap_or("service key");
    let project = me.project.as_deref().unwrap_or("all");
    say(&format!(
        "{} of {} ({role})\nScopes: {}\nProjects: {project}\n{ends}: {}",
        me.handle,
        me.tenant,
        me.scopes.join(" "),
        cairn_wire::time::text(me.expires_at)
    ));
    Ok(())
}
