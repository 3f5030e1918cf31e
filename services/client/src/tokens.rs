//! Tokens: what a sign-in on a page gives this machine. Access tokens are renewed before they are
//! over, under a lock: a refresh token is good once, and a second process that showed the same one
//! would end the sign-in.

use std::time::Duration;

use cairn_wire::sign_in::TokenAnswer;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::account::{self, Account};
use crate::api::Api;
use crate::config::{Dirs, Settings};
use crate::exit::Failure;
use crate::files::{self, Lock};

/// The id under which the service knows this program.
pub const CLIENT: &str = "cairn";

/// How long before its end an access token is renewed: longer than any request takes.
const MARGIN: TimeDelta = TimeDelta::seconds(60);

/// How long one waits for another process that renews.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long the service may take to give new tokens.
const DEADLINE: Duration = Duration::from_secs(5);

/// The tokens of one sign-in, as they are kept.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// What is shown with each request.
    pub access: String,
    /// Until when.
    pub until: DateTime<Utc>,
    /// What is shown once for the next ones.
    pub refresh: String,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens(until {})", self.until)
    }
}

impl Tokens {
    /// What the service gave, from now on.
    #[must_use]
    pub fn of(answer: TokenAnswer) -> Self {
        Self {
            access: answer.access_token,
            until: Utc::now() + TimeDelta::seconds(answer.expires_in),
            refresh: answer.refresh_token,
        }
    }

    /// What names the sign-in and is no secret: the id in its refresh tokens, which all share it.
    #[must_use]
    pub fn grant(&self) -> String {
        let id = self.refresh.strip_prefix("cairn_r_");
        let id = id.and_then(|rest| rest.split('_').next());
        let plain = |id: &&str| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        match id.filter(plain) {
            Some(id) => id.to_owned(),
            None => account::key_id(&self.refresh),
        }
    }

    fn is_due(&self) -> bool {
        Utc::now() + MARGIN >= self.until
    }
}

/// The account for `service`, if there is one, with a key or token that can be shown now.
///
/// # Errors
/// [`Failure::NotSignedIn`] if the service does not renew the sign-in any more; as
/// [`Api::json`], unless the token is still good for this time; [`Failure::CannotWrite`].
pub async fn ready(
    dirs: &Dirs,
    settings: &Settings,
    service: &str,
) -> Result<Option<Account>, Failure> {
    match account::find(dirs, settings, service) {
        Some(account) => renewed(dirs, service, account).await.map(Some),
        None => Ok(None),
    }
}

/// The same account with a token that can be shown now.
///
/// # Errors
/// As [`ready`].
pub async fn renewed(dirs: &Dirs, service: &str, account: Account) -> Result<Account, Failure> {
    match account.tokens() {
        Some(tokens) if tokens.is_due() => renew(dirs, service, account).await,
        _ => Ok(account),
    }
}

/// The account with another token than the one that the service has just refused; none if there
/// is no other.
///
/// # Errors
/// As [`ready`].
pub async fn replaced(
    dirs: &Dirs,
    service: &str,
    refused: &Account,
) -> Result<Option<Account>, Failure> {
    if refused.tokens().is_none() {
        return Ok(None);
    }
    let renewed = renew(dirs, service, refused.clone()).await?;
    Ok((renewed.key != refused.key).then_some(renewed))
}

async fn renew(dirs: &Dirs, service: &str, account: Account) -> Result<Account, Failure> {
    // What cannot be kept must not be asked for: the old token would be used up for nothing.
    let folder = dirs.config.as_path();
    if !files::can_write(folder) {
        let cause = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        return still_good(account, Failure::writing(folder)(cause));
    }
    let Some(_lock) = lock(dirs).await? else {
        let busy = "another process renews the sign-in".to_owned();
        return still_good(account, Failure::Unreachable(busy));
    };
    // Whoever held the lock before has left newer ones, or somebody else is signed in by now.
    let Some(kept) = account::find_kept(dirs, service) else {
        return Err(Failure::NotSignedIn(format!("signed out of {service}")));
    };
    let (Some(tokens), true) = (kept.tokens(), kept.key == account.key) else {
        return Ok(kept);
    };
    match ask(service, &tokens.refresh).await {
        Ok(answer) => {
            let tokens = Tokens::of(answer);
            account::keep_tokens(dirs, service, &tokens)?;
            Ok(kept.with(tokens))
        }
        Err(failure) => still_good(kept, failure),
    }
}

/// The account as it is while its token lasts; else why there is no newer one.
fn still_good(account: Account, failure: Failure) -> Result<Account, Failure> {
    let is_over = matches!(failure, Failure::NotSignedIn(_));
    match account.tokens() {
        Some(tokens) if !is_over && Utc::now() < tokens.until => Ok(account),
        _ => Err(failure),
    }
}

async fn ask(service: &str, refresh: &str) -> Result<TokenAnswer, Failure> {
    let api = Api::new(service, None, DEADLINE)?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", CLIENT),
        ("refresh_token", refresh),
    ];
    match api.form("/oauth/token", &fields).await? {
        Ok(answer) => Ok(answer),
        Err(refusal) => Err(Failure::NotSignedIn(format!(
            "the sign-in at {service} is over ({refusal})"
        ))),
    }
}

/// The right to change what is kept of sign-ins; none if another process keeps it too long.
async fn lock(dirs: &Dirs) -> Result<Option<Lock>, Failure> {
    let path = dirs.config.join("credentials.lock");
    let dirs = dirs.clone();
    let taken = tokio::task::spawn_blocking(move || account::lock(&dirs, PATIENCE)).await;
    let taken = taken.map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))?;
    taken.map_err(Failure::writing(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_is_named_by_what_its_tokens_share() {
        let of = |refresh: &str| Tokens {
            access: "a.b.c".to_owned(),
            until: Utc::now(),
            refresh: refresh.to_owned(),
        };
        let id = "0198f3a01c0070008000000000000001";
        assert_eq!(of(&format!("cairn_r_{id}_secret")).grant(), id);
        let other = of("another form of token").grant();
        assert!(other.len() == 16 && !other.contains("another"));
        assert!(!format!("{:?}", of("secret")).contains("secret"));
    }
}
