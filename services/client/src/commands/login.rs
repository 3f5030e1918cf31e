//! Signing in and out.

use std::io::Read;

use cairn_wire::auth::Me;

use super::{Client, DEADLINE, say};
use crate::account::{self, Account, Tenants};
use crate::api::{self, Api};
use crate::cli::Login;
use crate::config;
use crate::exit::Failure;

/// Bytes of standard input that may hold a key.
const KEY_INPUT: u64 = 4_096;

/// Takes a key from standard input, has the service confirm it, and keeps it.
pub fn login(client: &Client, how: &Login) -> Result<(), Failure> {
    let service = match &how.url {
        Some(url) => config::parse_url(url)
            .ok_or_else(|| Failure::Usage("--url must be an http or https address".to_owned()))?,
        None => client.settings.service()?.to_owned(),
    };
    let mut key = String::new();
    let read = std::io::stdin().take(KEY_INPUT).read_to_string(&mut key);
    read.map_err(|e| Failure::Unreadable(format!("standard input: {e}")))?;
    let key = key.trim();
    if !account::is_key(key) {
        let wanted = "standard input must hold a key of the form cairn_<id>_<secret>";
        return Err(Failure::Usage(wanted.to_owned()));
    }
    let account = Account::of_key(&client.dirs, &service, key);
    let api = Api::new(&service, Some(&account), DEADLINE)?;
    let me: Me = api::block_on(api.json(api.get("/v1/me")))?;
    account::save(&client.dirs, &service, key, &me)?;
    say(&format!(
        "Signed in to {service} as {} of {}.",
        me.handle, me.tenant
    ));
    if client.settings.api_key.is_some() {
        say("CAIRN_API_KEY is set and goes before this key.");
    }
    Ok(())
}

/// Forgets the key of the service in force.
pub fn logout(client: &Client) -> Result<(), Failure> {
    let service = client.settings.service()?;
    match account::remove(&client.dirs, service)? {
        true => say(&format!(
            "Signed out of {service}. The key itself stays valid."
        )),
        false => say(&format!("There was no key for {service}.")),
    }
    if client.settings.api_key.is_some() {
        say("CAIRN_API_KEY is still set.");
    }
    Ok(())
}

/// Prints whom the service takes the caller for.
pub fn whoami(client: &Client) -> Result<(), Failure> {
    let api = client.api()?;
    let me: Me = api::block_on(api.json(api.get("/v1/me")))?;
    if let Some(account) = client.account(client.settings.service()?) {
        let tenants = Tenants::of(&client.dirs, client.settings.service()?);
        tenants.note(&account.key_id, &me.tenant);
    }
    let role = me.role.as_deref().unwrap_or("service key");
    let project = me.project.as_deref().unwrap_or("all");
    say(&format!(
        "{} of {} ({role})\nScopes: {}\nProjects: {project}\nKey expires: {}",
        me.handle,
        me.tenant,
        me.scopes.join(" "),
        cairn_wire::time::text(me.expires_at)
    ));
    Ok(())
}
