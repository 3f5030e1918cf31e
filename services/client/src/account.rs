//! Account: which key the client shows to which service, and for which team records are spooled.
//!
//! Kept in `credentials.json`, readable by its owner alone, one entry a service.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::{Dirs, Settings};
use crate::exit::Failure;
use crate::files;

/// A key as it is used for one service.
#[derive(Clone, Debug)]
pub struct Account {
    /// The key itself.
    pub key: String,
    /// The tenant's name; unknown for a key from the environment.
    pub tenant: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Credentials {
    /// The service of the last sign-in, used where no setting names one.
    last_used: Option<String>,
    services: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    key: String,
    tenant: String,
    handle: String,
}

/// The account for `service`, if there is one.
#[must_use]
pub fn find(dirs: &Dirs, settings: &Settings, service: &str) -> Option<Account> {
    if let Some(key) = &settings.api_key {
        return Some(Account {
            key: key.clone(),
            tenant: None,
        });
    }
    let entry = load(dirs).services.remove(service)?;
    Some(Account {
        key: entry.key,
        tenant: Some(entry.tenant),
    })
}

/// The service of the last sign-in.
#[must_use]
pub fn last_used(dirs: &Dirs) -> Option<String> {
    load(dirs).last_used
}

/// Remembers a key that `service` has accepted.
///
/// # Errors
/// [`Failure::CannotWrite`].
pub fn save(
    dirs: &Dirs,
    service: &str,
    key: &str,
    me: &cairn_wire::auth::Me,
) -> Result<(), Failure> {
    let mut credentials = load(dirs);
    credentials.last_used = Some(service.to_owned());
    let entry = Entry {
        key: key.to_owned(),
        tenant: me.tenant.clone(),
        handle: me.handle.clone(),
    };
    credentials.services.insert(service.to_owned(), entry);
    store(dirs, &credentials)
}

/// Forgets the key of `service`; whether there was one.
///
/// # Errors
/// [`Failure::CannotWrite`].
pub fn remove(dirs: &Dirs, service: &str) -> Result<bool, Failure> {
    let mut credentials = load(dirs);
    let known = credentials.services.remove(service).is_some();
    if known {
        store(dirs, &credentials)?;
    }
    Ok(known)
}

/// The form of a key: `cairn_<12 of a-z2-7>_<43 letters and digits>`.
#[must_use]
pub fn is_key(text: &str) -> bool {
    let Some((id, secret)) = text
        .strip_prefix("cairn_")
        .and_then(|rest| rest.split_once('_'))
    else {
        return false;
    };
    let id_ok = id.len() == 12 && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
    id_ok && secret.len() == 43 && secret.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn path(dirs: &Dirs) -> PathBuf {
    dirs.config.join("credentials.json")
}

/// A file that is missing or broken holds no credentials; signing in writes it anew.
fn load(dirs: &Dirs) -> Credentials {
    let text = fs::read(path(dirs)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn store(dirs: &Dirs, credentials: &Credentials) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(credentials).expect("texts serialise");
    files::replace(&path(dirs), &json).map_err(Failure::writing(&path(dirs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_form() {
        let good = format!("cairn_abcdefghij27_{}", "A0z".repeat(15)[..43].to_owned());
        assert!(is_key(&good));
        for bad in [
            "",
            "cairn_",
            "cairn_abcdefghij27_short",
            &good[1..],
            &good.replace('j', "1"),
        ] {
            assert!(!is_key(bad), "{bad}");
        }
    }
}
