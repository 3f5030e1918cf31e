//! Sending the spool, for a person who waits and for a hook that does not.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::Duration;

use chrono::Utc;
use serde::Deserialize;

use super::{Client, no_home, say};
use crate::account::{self, Tenants};
use crate::api::{self, Api};
use crate::config::{Dirs, Settings};
use crate::copies::Copies;
use crate::exit::{Failure, UNREACHABLE};
use crate::files::Lock;
use crate::hooks;
use crate::spool::{Addressee, Flush, Naming, Outcome, Pace, Spool, Stop, Trouble};
use crate::{log, project, state, tokens, work_state};

/// The longest wait that a flush sits out itself; a longer one is left to a later run.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long git may take to name a repository.
const GIT_PATIENCE: Duration = Duration::from_secs(20);

/// How long the service may take to say whose a key is.
const ME_TIME: Duration = Duration::from_secs(5);

/// How long somebody waits for what is sent before they read.
const MOMENT: Duration = Duration::from_secs(3);

/// How long the service may take to tell the lists of a project.
const REFRESH_TIME: Duration = Duration::from_secs(5);

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Sends the spool and says what became of it.
pub fn now(client: &Client) -> Result<(), Failure> {
    let Some(outcome) = flush(&client.dirs, &client.settings, true)? else {
        say("Another process is sending already.");
        return Ok(());
    };
    if outcome.sent > 0 || outcome.set_aside > 0 || outcome.stop.is_none() {
        say(&format!(
            "Sent {}, set aside {}.",
            outcome.sent, outcome.set_aside
        ));
    }
    let held = Spool::of(&client.dirs, &client.settings).held();
    if held > 0 {
        say(&format!("Held back {held}, on which the service failed."));
    }
    match outcome.stop {
        Some(stop) => Err(failure(stop)),
        None => Ok(()),
    }
}

/// Sends the spool as a process of its own. Its failures stand in `cairn status` and the log.
pub fn in_background() -> Result<(), Failure> {
    let dirs = Dirs::from_env().ok_or_else(no_home)?;
    if !hooks::detach(&dirs) {
        return Ok(());
    }
    let settings = Settings::load(&dirs, None);
    match flush(&dirs, &settings, false) {
        Ok(Some(outcome)) => {
            if let Some(stop) = outcome.stop {
                log::line(&dirs, &format!("flush: {}", stop.why));
            } else if settings.verbose {
                log::line(&dirs, &format!("flush: sent {}", outcome.sent));
            }
        }
        Ok(None) => {}
        Err(failure) => log::line(&dirs, &format!("flush: {failure}")),
    }
    Ok(())
}

/// Sends what waits before somebody reads from a service that has just answered; what takes
/// longer than a moment goes on in the background.
pub fn in_a_moment(dirs: &Dirs, settings: &Settings) {
    let spool = Spool::of(dirs, settings);
    if let Ok(Some(lock)) = spool.lock_flush() {
        // One that is given up is like one that is killed: what it did not see answered stays.
        drop(api::block_on(async {
            let all = flush_all(dirs, settings, &spool, lock, true);
            Ok(tokio::time::timeout(MOMENT, all).await)
        }));
    }
    hooks::start_flusher(&spool, dirs);
}

fn failure(stop: Stop) -> Failure {
    match stop.trouble {
        Trouble::SignIn => Failure::NotSignedIn(stop.why),
        Trouble::Fault => Failure::Fault(stop.why),
        Trouble::Busy | Trouble::Away => {
            // What was noted is already said in full.
            let why = stop.why.trim_start_matches(UNREACHABLE);
            Failure::Unreachable(why.to_owned())
        }
    }
}

/// `None` if another process holds the right to flush.
fn flush(dirs: &Dirs, settings: &Settings, by_hand: bool) -> Result<Option<Outcome>, Failure> {
    let spool = Spool::of(dirs, settings);
    let Some(lock) = spool.lock_flush().map_err(unwritable)? else {
        return Ok(None);
    };
    state::prune(dirs);
    api::block_on(flush_all(dirs, settings, &spool, lock, by_hand)).map(Some)
}

async fn flush_all(
    dirs: &Dirs,
    settings: &Settings,
    spool: &Spool,
    mut lock: Lock,
    by_hand: bool,
) -> Result<Outcome, Failure> {
    let mut total = Outcome::default();
    loop {
        let Some(mut flusher) = Flusher::new(dirs, settings, spool.clone()).await? else {
            total.stop = (!spool.is_empty()).then(signed_out);
            return Ok(total);
        };
        flusher.run(&mut total, by_hand).await.map_err(unwritable)?;
        // A hook that found the lock held relies on one more look after its end.
        drop(lock);
        let again = total.stop.is_none() && spool.has_more_than(&total).map_err(unwritable)?;
        match again.then(|| spool.lock_flush()).transpose() {
            Ok(Some(Some(again))) => lock = again,
            Ok(_) => {
                // With the lock free, and only from a service that answers.
                if total.stop.is_none() {
                    flusher.refresh_copies(&total.touched).await;
                }
                return Ok(total);
            }
            Err(cause) => return Err(unwritable(cause)),
        }
    }
}

fn unwritable(cause: io::Error) -> Failure {
    Failure::CannotWrite {
        what: "the spool".to_owned(),
        cause,
    }
}

/// The part of `GET /v1/me` that a flush needs.
#[derive(Deserialize)]
struct Whose {
    tenant: String,
}

fn signed_out() -> Stop {
    Stop {
        trouble: Trouble::SignIn,
        why: "not signed in".to_owned(),
        retry_after: None,
    }
}

struct Flusher<'a> {
    dirs: &'a Dirs,
    spool: Spool,
    api: Api,
    to: Addressee,
    /// What git has said about checkouts.
    named: RefCell<HashMap<String, Naming>>,
}

impl<'a> Flusher<'a> {
    /// `None` if nobody is signed in.
    async fn new(
        dirs: &'a Dirs,
        settings: &Settings,
        spool: Spool,
    ) -> Result<Option<Self>, Failure> {
        let service = settings.service()?.to_owned();
        let Some(account) = account::find(dirs, settings, &service) else {
            return Ok(None);
        };
        Ok(Some(Self {
            dirs,
            spool,
            api: Api::new(&service, Some(&account), DEADLINE)?,
            named: RefCell::default(),
            to: Addressee {
                tenants: Tenants::of(dirs, &service),
                service,
                account,
                machine: state::machine_id(dirs),
            },
        }))
    }

    /// Learns whose the key is, once. Without an answer only what was spooled under this very key
    /// is known to be for its tenant.
    async fn learn_tenant(&mut self) {
        if self.to.account.tenant.is_some() {
            return;
        }
        let question = self.api.get("/v1/me").timeout(ME_TIME);
        if let Ok(me) = self.api.json::<Whose>(question).await {
            self.to.tenants.note(&self.to.account.key_id, &me.tenant);
            self.to.account.tenant = Some(me.tenant);
        }
    }

    /// Sees to it that there is a token to show; why there is none.
    async fn renew(&mut self) -> Option<Stop> {
        let account = self.to.account.clone();
        let (trouble, why) = match tokens::renewed(self.dirs, &self.to.service, account).await {
            Ok(account) => {
                self.api = self.api.signed(&account);
                self.to.account = account;
                return None;
            }
            Err(Failure::NotSignedIn(why)) => (Trouble::SignIn, why),
            Err(failure @ Failure::Fault(_)) => (Trouble::Fault, failure.to_string()),
            Err(failure) => (Trouble::Away, failure.to_string()),
        };
        Some(Stop {
            trouble,
            why,
            retry_after: None,
        })
    }

    /// Asks git at most once about a checkout, however slow it is.
    fn name(&self, root: &str) -> Naming {
        let mut named = self.named.borrow_mut();
        let ask = || project::name_checkout(root, self.dirs, GIT_PATIENCE);
        named.entry(root.to_owned()).or_insert_with(ask).clone()
    }

    async fn run(&mut self, total: &mut Outcome, by_hand: bool) -> io::Result<()> {
        loop {
            let identity = self.to.account.identity();
            let mut pace = Pace::load(self.dirs, &self.to.service, Some(identity));
            let wait = pace.wait(Utc::now());
            // A person may ask at any time whether an outage is over; a refused key and a
            // service that asked for rest are left alone.
            let waived = by_hand && matches!(pace.trouble, Some(Trouble::Away | Trouble::Fault));
            if !wait.is_zero() && !waived {
                if wait > PATIENCE {
                    total.stop = Some(waiting_stop(&pace, wait));
                    return Ok(());
                }
                tokio::time::sleep(wait).await;
            }
            if !self.spool.is_empty() {
                if let Some(stop) = self.renew().await {
                    let outcome = Outcome {
                        stop: Some(stop),
                        ..Outcome::default()
                    };
                    pace.note(&outcome, Utc::now());
                    pace.save(self.dirs);
                    total.stop = outcome.stop;
                    return Ok(());
                }
                self.learn_tenant().await;
            }
            let flush = Flush {
                spool: &self.spool,
                service: &self.api,
                to: &self.to,
                name: &|root| self.name(root),
                now: Utc::now(),
            };
            let outcome = flush.run().await?;
            pace.note(&outcome, Utc::now());
            pace.save(self.dirs);
            self.retry_refused_by_older(&outcome)?;
            let busy = outcome
                .stop
                .as_ref()
                .is_some_and(|stop| stop.trouble == Trouble::Busy);
            total.sent += outcome.sent;
            total.set_aside += outcome.set_aside;
            total.stop = outcome.stop;
            total.segments = outcome.segments;
            total.touched.extend(outcome.touched);
            if !busy {
                return Ok(());
            }
        }
    }

    /// Fetches the lists of projects in which a session began or an entry was written, for the
    /// time without the service. Nobody waits for it, and a failure is made up for next time.
    async fn refresh_copies(&self, projects: &BTreeSet<String>) {
        for project in projects {
            let copies = Copies::of(self.dirs, &self.to.service, &self.to.account, project);
            let refresh = work_state::refresh(&self.api, &copies, project);
            drop(tokio::time::timeout(REFRESH_TIME, refresh).await);
        }
    }

    /// Records that an older service did not understand, or failed on, get another chance with a
    /// newer one.
    fn retry_refused_by_older(&self, outcome: &Outcome) -> io::Result<()> {
        let Some(version) = outcome.version.as_deref() else {
            return Ok(());
        };
        let grown = |old: &Option<String>| {
            old.as_deref()
                .is_none_or(|old| numbers(version) > numbers(old))
        };
        self.spool.put_back(|entry| {
            let code = entry.code.as_deref();
            matches!(code, Some("unsupported_kind" | "internal")) && grown(&entry.version)
        })?;
        Ok(())
    }
}

fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

fn waiting_stop(pace: &Pace, wait: Duration) -> Stop {
    let why = pace.error.as_deref().unwrap_or("the last attempt failed");
    Stop {
        trouble: pace.trouble.unwrap_or(Trouble::Away),
        why: format!("{why} (next attempt in {} s)", wait.as_secs() + 1),
        retry_after: None,
    }
}
