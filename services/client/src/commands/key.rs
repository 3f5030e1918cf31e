//! `cairn key`: keys of one's own, and of the team.

use cairn_wire::keys::{KeyItem, KeyMade, KeyWrite};

use super::{Client, all_items, say};
use crate::api::{self, percent_encode};
use crate::cli::{Key, KeyCreate};
use crate::exit::Failure;

/// Runs what is asked.
pub fn key(client: &Client, what: Key) -> Result<(), Failure> {
    let api = client.api_anywhere()?;
    match what {
        Key::List => {
            let keys: Vec<KeyItem> = api::block_on(all_items(&api, "/v1/keys"))?;
            for key in keys {
                say(&line(&key));
            }
        }
        Key::Create(what) => {
            let body = serde_json::to_vec(&KeyWrite::from(what)).expect("texts serialise");
            let made: KeyMade = api::block_on(api.json(api.post("/v1/keys", body)))?;
            // The key alone, so that it can be piped to where it belongs.
            say(&made.key);
        }
        Key::Revoke { id } => {
            let address = format!("/v1/keys/{}", percent_encode(&id).replace('/', "%2F"));
            api::block_on(api.done(api.delete(&address)))?;
            say(&format!("{id} is revoked."));
        }
    }
    Ok(())
}

impl From<KeyCreate> for KeyWrite {
    fn from(what: KeyCreate) -> Self {
        Self {
            name: what.name,
            scopes: (!what.scopes.is_empty()).then_some(what.scopes),
            project: what.project,
            expires_in_days: what.days,
            service: what.service,
            member: what.member,
        }
    }
}

fn line(key: &KeyItem) -> String {
    let used = key.last_used_at.map(cairn_wire::time::text);
    format!(
        "{}  {}  {}  {}  {}  ends {}  used {}",
        key.id,
        key.owner,
        key.name,
        key.scopes.join(","),
        key.project.as_deref().unwrap_or("*"),
        cairn_wire::time::text(key.expires_at),
        used.as_deref().unwrap_or("never")
    )
}
