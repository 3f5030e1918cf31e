//! What a flush needs of the world: for whom it is, who takes its requests, how it can end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use cairn_wire::events::ProjectName;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::record::Record;
use crate::account::{Account, Tenants};

/// For whom a flush is.
#[derive(Clone, Debug)]
pub struct Addressee {
    /// The service's address.
    pub service: String,
    /// The account that sends.
    pub account: Account,
    /// Whose other keys are.
    pub tenants: Tenants,
    /// This machine.
    pub machine: String,
}

impl Addressee {
    /// Whether a record was written for this service and tenant. Where that is not known for
    /// certain, it was not.
    #[must_use]
    pub fn is_for(&self, record: &Record) -> bool {
        if record.service.as_ref() != Some(&self.service) {
            return false;
        }
        let ours = self.account.tenant.as_ref();
        match (&record.tenant, &record.key_id) {
            (Some(tenant), _) => ours == Some(tenant),
            (None, Some(key_id)) if *key_id == self.account.key_id => true,
            (None, Some(key_id)) => ours.is_some() && self.tenants.find(key_id).as_ref() == ours,
            (None, None) => true,
        }
    }

    /// Makes a record ours that nobody was signed in for; whether it changed. From then on it
    /// goes to no other tenant, however long its sending takes.
    pub fn claim(&self, record: &mut Record) -> bool {
        if record.tenant.is_some() || record.key_id.is_some() {
            return false;
        }
        match &self.account.tenant {
            Some(tenant) => record.tenant = Some(tenant.clone()),
            None => record.key_id = Some(self.account.key_id.clone()),
        }
        true
    }
}

/// What came back for a request.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// The service answered for its items.
    Answered {
        /// What became of each.
        answer: Answer,
        /// The service's version.
        version: Option<String>,
    },
    /// The request is too large.
    TooLarge,
    /// The service cannot read the request; sending it again is of no use.
    Unreadable(String),
    /// The service failed on the request: on one of its records, or altogether.
    Fault {
        /// The failure in words.
        why: String,
        /// The service's version.
        version: Option<String>,
    },
    /// Nothing was taken, and the rest of the spool would fare no better just now.
    Stopped(Stop),
}

/// Why a flush ended before its work was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The kind of trouble.
    pub trouble: Trouble,
    /// The trouble in words.
    pub why: String,
    /// How long the service asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The credential is missing, unknown or not enough.
    SignIn,
    /// The service asks to wait.
    Busy,
    /// There is no answer, or none that can be used.
    Away,
    /// The service answers and fails.
    Fault,
}

/// What a flush learns about a record that was spooled before its project's name was known.
#[derive(Clone, Debug)]
pub enum Naming {
    /// Its project.
    Project(ProjectName),
    /// The folder's name, which it has, stays.
    Folder,
    /// Not now; it waits.
    Later,
}

/// Takes requests of events.
pub trait Service {
    /// Sends the body of a request.
    async fn send(&self, body: Vec<u8>) -> Delivery;
}

/// What became of a flush.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records that the service has.
    pub sent: usize,
    /// Records that were set aside.
    pub set_aside: usize,
    /// Why it ended early, if it did.
    pub stop: Option<Stop>,
    /// Segments that it has worked through.
    pub segments: Vec<PathBuf>,
    /// Keys of projects in which a session began or a list was written to.
    pub touched: BTreeSet<String>,
    /// The service's version.
    pub version: Option<String>,
}
