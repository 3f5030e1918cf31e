//! The state of this machine: what waits, what was set aside, and why.

use std::time::Duration;

use super::{Client, say};
use crate::account::{self, Account, Tenants};
use crate::api;
use crate::cli;
use crate::exit::Failure;
use crate::spool::{Addressee, Pace, Record, Spool};

/// How long the service may take to show that it is there.
const PROBE_TIME: Duration = Duration::from_secs(3);

/// Characters of a reason in a list.
const REASON_CHARS: usize = 160;

/// One screen, or one line.
pub fn status(client: &Client, short: bool) -> Result<(), Failure> {
    let spool = Spool::of(&client.dirs, &client.settings);
    let service = client.settings.url.as_deref();
    let account = service.and_then(|service| client.account(service));
    let key = account.as_ref().map(Account::identity);
    let pace = service
        .map(|service| Pace::load(&client.dirs, service, key))
        .unwrap_or_default();
    let records = spool.waiting().map_err(unreadable)?;
    let waiting = records.len();
    let to = service.zip(account.clone());
    let to = to.map(|(service, account)| Addressee {
        service: service.to_owned(),
        account,
        tenants: Tenants::of(&client.dirs, service),
        machine: String::new(),
    });
    let is_foreign = |record: &&Record| to.as_ref().is_some_and(|to| !to.is_for(record));
    let foreign = records.iter().filter(is_foreign).count();
    let aside = spool.aside().count().map_err(unreadable)?;
    let held = spool.held();
    let counted = spool.counted();
    let now = match account.is_some() && !short {
        true => reach(client).err(),
        false => None,
    };
    let healthy = aside + held == 0
        && counted == 0
        && pace.error.is_none()
        && now.is_none()
        && account.is_some();
    let state = if healthy { "ok" } else { "attention" };
    if short {
        say(&format!(
            "cairn: {state}, {waiting} waiting, {aside} set aside"
        ));
        return Ok(());
    }
    let project = client.named_project()?;
    let signed_in = match &account {
        Some(account) => match (&account.tenant, account.tokens()) {
            (None, _) => "key from CAIRN_API_KEY".to_owned(),
            (Some(tenant), None) => format!("{tenant}, by key"),
            (Some(tenant), Some(_)) => {
                let handle =
                    service.and_then(|service| account::kept_handle(&client.dirs, service));
                format!("{tenant}, signed in as {}", handle.unwrap_or_default())
            }
        },
        None => "not signed in; run: cairn login".to_owned(),
    };
    let mut lines = vec![
        format!("State:     {state}"),
        format!("Service:   {}", service.unwrap_or("none; set CAIRN_URL")),
        format!("Account:   {signed_in}"),
        format!("Project:   {}", project.name.key),
        format!(
            "Waiting:   {waiting}{}",
            match foreign {
                0 => String::new(),
                count => format!("; {count} of them for another service or tenant"),
            }
        ),
        format!(
            "Set aside: {aside}{}",
            if aside > 0 {
                "; see: cairn spool list"
            } else {
                ""
            }
        ),
    ];
    if held > 0 {
        lines.push(format!(
            "Held back: {held} of those that wait; the service failed on them"
        ));
    }
    if counted > 0 {
        lines.push(format!(
            "Lost:      {counted} tool uses found the spool full or no place to note private turns"
        ));
    }
    if let Some(at) = pace.sent_at {
        lines.push(format!("Last sent: {}", cairn_wire::time::text(at)));
    }
    if let Some(error) = &pace.error {
        lines.push(format!("Last error: {error}"));
    }
    if let Some(failure) = now {
        lines.push(format!("Now:       {failure}"));
    }
    say(&lines.join("\n"));
    Ok(())
}

/// Whether the service answers this account just now.
fn reach(client: &Client) -> Result<(), Failure> {
    let api = client.api()?;
    let question = api.get("/v1/me").timeout(PROBE_TIME);
    api::block_on(api.json::<serde_json::Value>(question)).map(drop)
}

/// Lists, retries or drops set-aside records.
pub fn spool(client: &Client, what: cli::Spool) -> Result<(), Failure> {
    let spool = Spool::of(&client.dirs, &client.settings);
    match what {
        cli::Spool::List => {
            let entries = spool.aside().list().map_err(unreadable)?;
            for entry in &entries {
                let reason: String = entry.reason.chars().take(REASON_CHARS).collect();
                let what = match Record::parse(entry.line.as_bytes()) {
                    Ok(record) => format!("{} {}", record.item.event_id, record.item.kind),
                    Err(_) => format!("unreadable, {} bytes", entry.line.len()),
                };
                say(&format!("{what}: {reason}"));
            }
            say(&format!("{} set aside.", entries.len()));
        }
        cli::Spool::Retry => {
            let count = spool.put_back(|_| true).map_err(unreadable)?;
            say(&format!("{count} put back; send them with: cairn flush"));
        }
        cli::Spool::Drop => {
            let dropped = spool.aside().take(|_| Ok(true)).map_err(unreadable)?;
            say(&format!("{dropped} dropped."));
        }
    }
    Ok(())
}

fn unreadable(cause: std::io::Error) -> Failure {
    Failure::Failed(format!("the spool: {cause}"))
}
