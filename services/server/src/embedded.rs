//! The embedded default: one process on loopback with a Postgres of its own, no Redis.

use std::path::Path;

use anyhow::Context;
use cairn_store::{Store, StoreOptions};

use crate::admin;
use crate::app::Clock;

/// The tenant that the first start makes.
const FIRST_TENANT: &str = "home";

/// Makes a tenant, its owner and a key in one step, if there is no key yet that could open the
/// service. Answers the key, which is shown once.
///
/// # Errors
/// If the store is unavailable.
pub async fn first_start(store: &Store, clock: &Clock) -> anyhow::Result<Option<String>> {
    let mut tx = store.system("embedded.first_start").await?;
    if tx.has_credential().await? {
        return Ok(None);
    }
    let key = admin::insert_tenant(&mut tx, clock, FIRST_TENANT, &owner_handle()).await?;
    tx.commit().await?;
    Ok(Some(key.reveal()))
}

/// A handle out of the account's name; `owner` if nothing of it can stand in one.
fn owner_handle() -> String {
    let name = std::env::home_dir();
    let name = name
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let handle: String = name.chars().filter(allowed).take(39).collect();
    let handle = handle.trim_start_matches(['.', '_', '-']);
    if handle.is_empty() || handle == "root" {
        "owner".to_owned()
    } else {
        handle.to_owned()
    }
}

/// Connects to a database of our own, prepared and migrated.
///
/// # Errors
/// If it cannot be migrated or connected to.
pub async fn connect(superuser_url: &str, app_url: &str, pool: u32) -> anyhow::Result<Store> {
    cairn_store::prepare_database(superuser_url)
        .await
        .context("preparing the database")?;
    cairn_store::migrate(superuser_url)
        .await
        .context("migrating the database")?;
    let options = StoreOptions {
        url: app_url.to_owned(),
        pool,
    };
    Ok(Store::connect(&options).await?)
}
