//! The way around a disk that takes nothing: the record goes to the service at once.

use std::time::{Duration, Instant};

use crate::account::Account;
use crate::api::{self, Api};
use crate::config::Dirs;
use crate::exit::Failure;
use crate::spool::{self, Delivery, Naming, Outlook, Record, Service};
use crate::{project, state};

/// What is left of a hook's second.
const DEADLINE: Duration = Duration::from_millis(700);

/// The part of it that git may take.
const GIT_PATIENCE: Duration = Duration::from_millis(300);

/// Sends one record; whether the service has it.
#[must_use]
pub fn send(dirs: &Dirs, service: &str, account: Option<&Account>, mut record: Record) -> bool {
    let end = Instant::now() + DEADLINE;
    if let Some(root) = record.checkout_root.take() {
        match project::name_checkout(&root, dirs, GIT_PATIENCE) {
            Naming::Project(name) => record.item.project = Some(name),
            Naming::Folder => {}
            // Under the folder's name it would be another project's.
            Naming::Later => return false,
        }
    }
    let machine = state::machine_id(dirs);
    let request = spool::request(vec![&record.item], &machine);
    let left = end.saturating_duration_since(Instant::now());
    let sent = api::block_on(async {
        let api = Api::new(service, account, left)?;
        let answer = tokio::time::timeout(left, api.send(request)).await;
        answer.map_err(|_| Failure::Unreachable("no answer in time".to_owned()))
    });
    let Ok(Delivery::Answered { answer, .. }) = sent else {
        return false;
    };
    !answer.items.is_empty()
        && answer
            .items
            .iter()
            .all(|item| item.outlook() == Outlook::Taken)
}
