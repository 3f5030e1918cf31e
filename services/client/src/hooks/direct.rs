//! The way around a disk that takes nothing: the record goes to the service at once.

use std::time::Duration;

use cairn_wire::events::ItemStatus;
use chrono::Utc;
use serde_json::json;

use crate::account::Account;
use crate::api::{self, Api};
use crate::exit::Failure;
use crate::spool::{Delivery, Record, Service};

/// What is left of a hook's second.
const DEADLINE: Duration = Duration::from_millis(700);

/// Sends one record; whether the service has it.
#[must_use]
pub fn send(service: &str, account: Option<&Account>, record: &Record) -> bool {
    let request = json!({"sent_at": cairn_wire::time::text(Utc::now()), "items": [record.item]});
    let sent = api::block_on(async {
        let api = Api::new(service, account, DEADLINE)?;
        let sending = api.send(request.to_string().into_bytes());
        let answer = tokio::time::timeout(DEADLINE, sending).await;
        answer.map_err(|_| Failure::Unreachable("no answer in time".to_owned()))
    });
    let Ok(Delivery::Answered { answer, .. }) = sent else {
        return false;
    };
    !answer.items.is_empty()
        && answer
            .items
            .iter()
            .all(|item| item.status != ItemStatus::Refused)
}
