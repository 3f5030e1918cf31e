//! Copies of what the service said last, for a session that starts or an agent that asks while it
//! is away. Each belongs to one project of one account; they can be lost without harm.

use std::path::{Path, PathBuf};

use cairn_wire::domain::hlc::Hlc;
use cairn_wire::domain::redact::redact_json;
use cairn_wire::domain::work_state::WorkState;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::config::Dirs;
use crate::files::{self, Links};
use crate::state;

/// Bytes of a copy that are read: more than the service ever sends.
const COPY_BYTES: u64 = 16 * 1024 * 1024;

/// The index as a session was shown it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexCopy {
    /// When.
    pub at: DateTime<Utc>,
    /// Its text.
    pub text: String,
}

/// The lists of a project, with closed ones, in the form into which entries are merged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkCopy {
    /// When.
    pub at: DateTime<Utc>,
    /// The lists.
    pub work: WorkState,
}

/// The copies of one project, as one account sees it.
#[derive(Clone, Debug)]
pub struct Copies {
    index: PathBuf,
    work: PathBuf,
    seen: PathBuf,
}

impl Copies {
    /// Where the copies of a project stand.
    #[must_use]
    pub fn of(dirs: &Dirs, service: &str, account: &Account, project_key: &str) -> Self {
        let subject = [service, &account.key_id, project_key].join("\0");
        let path = |topic| state::kept_path(dirs, topic, &subject);
        Self {
            index: path("context-copies"),
            work: path("work-copies"),
            // Moments are the tenant's, whatever the project.
            seen: state::kept_path(dirs, "seen", &[service, &account.key_id].join("\0")),
        }
    }

    /// The last index.
    #[must_use]
    pub fn index(&self) -> Option<IndexCopy> {
        read(&self.index)
    }

    /// Keeps an index.
    pub fn keep_index(&self, copy: &IndexCopy) {
        write(&self.index, copy);
    }

    /// The lists as they were last.
    #[must_use]
    pub fn work(&self) -> Option<WorkCopy> {
        read(&self.work)
    }

    /// Keeps lists.
    pub fn keep_work(&self, copy: &WorkCopy) {
        write(&self.work, copy);
    }

    /// The highest moment of work entries that this machine was shown.
    #[must_use]
    pub fn seen(&self) -> Option<Hlc> {
        let text = files::read_text(&self.seen, files::SMALL, Links::Refuse).ok()?;
        text.trim().parse().ok()
    }

    /// Notes a moment that was shown, if none higher was.
    pub fn note_seen(&self, moment: Option<&str>) {
        let moment = moment.and_then(|text| text.parse::<Hlc>().ok());
        let Some(moment) = moment.filter(|moment| Some(*moment) > self.seen()) else {
            return;
        };
        // Of two processes that note at once the lower may stay: the next answer mends it.
        drop(files::replace(&self.seen, moment.to_string().as_bytes()));
    }
}

/// What a copy holds, if there is one that can be read.
pub fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = files::read_text(path, COPY_BYTES, Links::Refuse).ok()?;
    serde_json::from_str(&text).ok()
}

/// A copy that cannot be written is one that is missing later.
pub fn write<T: Serialize>(path: &Path, copy: &T) {
    if let Ok(json) = serde_json::to_string(copy) {
        // An older service may not have looked.
        drop(files::replace(path, redact_json(&json).as_bytes()));
    }
}
