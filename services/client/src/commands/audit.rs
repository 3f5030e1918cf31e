//! `cairn audit`: what was done in the tenant.

use cairn_wire::audit::AuditList;
use serde_json::json;

use super::{Client, say};
use crate::api::{self, query_string};
use crate::cli::Audit;
use crate::config;
use crate::exit::Failure;

/// Prints a page of the audit log.
pub fn audit(client: &Client, what: &Audit) -> Result<(), Failure> {
    let api = client.api_anywhere()?;
    let question = json!({
        "from": what.from,
        "to": what.to,
        "actor": what.actor,
        "action": what.action,
        "limit": what.limit,
        "cursor": what.cursor,
        "tz": config::time_zone(),
    });
    let address = format!("/v1/audit?{}", query_string(&question));
    let page: AuditList = api::block_on(api.json(api.get(&address)))?;
    for line in &page.items {
        say(&format!(
            "{}  {}  {}  {}  {}",
            cairn_wire::time::text(line.at),
            line.actor.as_deref().unwrap_or("operator"),
            line.action,
            line.target,
            line.detail
        ));
    }
    if let Some(cursor) = &page.next_cursor {
        say(&format!("More: --cursor {cursor}"));
    }
    Ok(())
}
