//! Account: which key or token the client shows to which service, and for which team records are
//! spooled.
//!
//! Kept in `credentials.json`, readable by its owner alone, one entry a service.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cairn_wire::domain::hex::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::{Dirs, Settings};
use crate::exit::Failure;
use crate::files::Lock;
use crate::tokens::Tokens;
use crate::{files, state};

/// How long a person waits for another process that changes what is kept.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// A key as it is used for one service, or the sign-in of a person.
#[derive(Clone, Debug)]
pub struct Account {
    /// The key itself, or the access token.
    pub key: String,
    /// What names the key without giving it away: see [`key_id`]; of a sign-in its id, which
    /// stays while its tokens change.
    pub key_id: String,
    /// The tenant's name; `None` until the service has said whose the key is.
    pub tenant: Option<String>,
    tokens: Option<Tokens>,
}

impl Account {
    /// A key whose tenant is known if the service has told it before.
    #[must_use]
    pub fn of_key(dirs: &Dirs, service: &str, key: &str) -> Self {
        let key_id = key_id(key);
        Self {
            tenant: Tenants::of(dirs, service).find(&key_id),
            key: key.to_owned(),
            key_id,
            tokens: None,
        }
    }

    /// An account of this name.
    #[cfg(test)]
    pub fn for_tests(key: &str, key_id: &str, tenant: Option<&str>) -> Self {
        Self {
            key: key.to_owned(),
            key_id: key_id.to_owned(),
            tenant: tenant.map(str::to_owned),
            tokens: None,
        }
    }

    /// The tokens of a sign-in; none of a key.
    #[must_use]
    pub fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// The same sign-in with newer tokens.
    #[must_use]
    pub fn with(self, tokens: Tokens) -> Self {
        Self {
            key: tokens.access.clone(),
            tokens: Some(tokens),
            ..self
        }
    }

    /// What tells this account from others of its service, as long as it is signed in.
    #[must_use]
    pub fn identity(&self) -> &str {
        match self.tokens {
            Some(_) => &self.key_id,
            None => &self.key,
        }
    }
}

/// Which tenant each key of one service belongs to, as the service said. A key never changes its
/// tenant, so this is asked once a key, and kept by its id.
#[derive(Clone, Debug)]
pub struct Tenants {
    dir: PathBuf,
}

impl Tenants {
    /// What is known about keys of `service`.
    #[must_use]
    pub fn of(dirs: &Dirs, service: &str) -> Self {
        Self {
            dir: state::kept_path(dirs, "tenants", service),
        }
    }

    /// The tenant of a key.
    #[must_use]
    pub fn find(&self, key_id: &str) -> Option<String> {
        // Ids also come from lines of the spool: only one of a key's form names a file.
        let plain = key_id.bytes().all(|b| b.is_ascii_alphanumeric()) && !key_id.is_empty();
        let path = plain.then(|| self.dir.join(key_id))?;
        let name = files::read_text(&path, files::SMALL, files::Links::Refuse).ok()?;
        Some(name).filter(|name| !name.is_empty())
    }

    /// Keeps what the service said. If it cannot be kept, the service is asked again.
    pub fn note(&self, key_id: &str, tenant: &str) {
        drop(files::replace(&self.dir.join(key_id), tenant.as_bytes()));
    }
}

/// What names a key and is no secret: its id, or a part of the digest of a key of another form.
#[must_use]
pub fn key_id(key: &str) -> String {
    let id = key
        .strip_prefix("cairn_")
        .and_then(|rest| rest.split_once('_'))
        .map(|(id, _)| id);
    match id {
        Some(id) if is_key(key) => id.to_owned(),
        _ => hex(&Sha256::digest(key.as_bytes()))[..16].to_owned(),
    }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
    tenant: String,
    handle: String,
}

impl Entry {
    fn account(self) -> Option<Account> {
        let (key, key_id) = match (&self.tokens, self.key) {
            (Some(tokens), _) => (tokens.access.clone(), tokens.grant()),
            (None, Some(key)) => {
                let key_id = key_id(&key);
                (key, key_id)
            }
            (None, None) => return None,
        };
        Some(Account {
            key,
            key_id,
            tenant: Some(self.tenant),
            tokens: self.tokens,
        })
    }
}

/// The account for `service`, if there is one.
#[must_use]
pub fn find(dirs: &Dirs, settings: &Settings, service: &str) -> Option<Account> {
    if let Some(key) = &settings.api_key {
        return Some(Account::of_key(dirs, service, key));
    }
    find_kept(dirs, service)
}

/// The account that is kept for `service`, whatever the environment says.
#[must_use]
pub fn find_kept(dirs: &Dirs, service: &str) -> Option<Account> {
    load(dirs).services.remove(service)?.account()
}

/// Who is signed in at `service`, by handle, with an account that is kept.
#[must_use]
pub fn kept_handle(dirs: &Dirs, service: &str) -> Option<String> {
    let entry = load(dirs).services.remove(service)?;
    Some(entry.handle)
}

/// What is wrong with the credentials, if they are there and must not be used.
#[must_use]
pub fn warning(dirs: &Dirs) -> Option<String> {
    let path = path(dirs);
    match files::read_trusted(&path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Some(format!("{}: {e}", path.display()))
        }
        _ => None,
    }
}

/// The service of the last sign-in.
#[must_use]
pub fn last_used(dirs: &Dirs) -> Option<String> {
    load(dirs).last_used
}

/// What is kept of a sign-in.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A key.
    Key(String),
    /// The tokens of a sign-in on a page.
    Tokens(Tokens),
}

/// Remembers what `service` has accepted; what it takes the place of.
///
/// # Errors
/// [`Failure::CannotWrite`].
pub fn save(
    dirs: &Dirs,
    service: &str,
    credential: &Credential,
    me: &cairn_wire::auth::Me,
) -> Result<Option<Account>, Failure> {
    // What nobody would trust afterwards is not written.
    let folder = dirs.config.as_path();
    files::check_folder(folder).map_err(Failure::writing(folder))?;
    let _lock = held(dirs)?;
    let mut credentials = load(dirs);
    credentials.last_used = Some(service.to_owned());
    let (key, tokens) = match credential.clone() {
        Credential::Key(key) => (Some(key), None),
        Credential::Tokens(tokens) => (None, Some(tokens)),
    };
    let entry = Entry {
        key,
        tokens,
        tenant: me.tenant.clone(),
        handle: me.handle.clone(),
    };
    let key_id = entry.clone().account().map(|account| account.key_id);
    if let Some(key_id) = key_id {
        Tenants::of(dirs, service).note(&key_id, &me.tenant);
    }
    let before = credentials.services.insert(service.to_owned(), entry);
    store(dirs, &credentials)?;
    Ok(before.and_then(Entry::account))
}

/// Keeps newer tokens of the sign-in at `service`. The caller holds the [`lock`].
///
/// # Errors
/// [`Failure::CannotWrite`].
pub fn keep_tokens(dirs: &Dirs, service: &str, tokens: &Tokens) -> Result<(), Failure> {
    let mut credentials = load(dirs);
    if let Some(entry) = credentials.services.get_mut(service) {
        entry.tokens = Some(tokens.clone());
    }
    store(dirs, &credentials)
}

/// Forgets the account of `service`; what it was.
///
/// # Errors
/// [`Failure::CannotWrite`].
pub fn remove(dirs: &Dirs, service: &str) -> Result<Option<Account>, Failure> {
    let _lock = held(dirs)?;
    let mut credentials = load(dirs);
    let known = credentials.services.remove(service);
    if known.is_some() {
        store(dirs, &credentials)?;
    }
    Ok(known.and_then(Entry::account))
}

/// The right to change what is kept; none if another process keeps it longer than `patience`.
///
/// # Errors
/// What the file system says.
pub fn lock(dirs: &Dirs, patience: Duration) -> io::Result<Option<Lock>> {
    files::make_private_dir(&dirs.config)?;
    files::lock(&dirs.config.join("credentials.lock"), patience)
}

/// The same for a person, who waits for as long as another process may take to renew a sign-in.
fn held(dirs: &Dirs) -> Result<Lock, Failure> {
    let taken = lock(dirs, LOCK_TIME).map_err(Failure::writing(&path(dirs)))?;
    taken.ok_or_else(|| Failure::Failed("another process changes the credentials".to_owned()))
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

/// A file that is missing or broken, or that others can write, holds no credentials; signing in
/// writes it anew.
fn load(dirs: &Dirs) -> Credentials {
    let text = files::read_trusted(&path(dirs)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn store(dirs: &Dirs, credentials: &Credentials) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(credentials).expect("texts serialise");
    files::replace(&path(dirs), &json).map_err(Failure::writing(&path(dirs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_gives_no_key_away() {
        let key = format!("cairn_abcdefghij27_{}", "A0z".repeat(15)[..43].to_owned());
        assert_eq!(key_id(&key), "abcdefghij27");
        for other in [&key[1..], "token", "cairn_secret_secret"] {
            let id = key_id(other);
            assert!(id.len() == 16 && !id.contains("secret"), "{id}");
        }
    }

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
