//! `cairn-server admin`: tenants, members and keys from the machine that runs the service. Each
//! noun has its commands, and what they do, in a file of its own.

mod audit;
mod keys;
mod members;
mod positions;
mod projects;
mod purge;
mod quotas;
mod redact;
mod tenants;
mod token_key;

use anyhow::{Context, bail};
use cairn_domain::ids::{TenantId, is_handle};
use cairn_store::Store;
use cairn_store::bus::Message;
use clap::Subcommand;

pub use audit::AuditCommand;
pub use keys::{KeyCommand, KeyTerms, create_key, revoke_key};
pub use members::{MemberCommand, add_member, make_code};
pub use positions::PositionCommand;
pub use projects::ProjectCommand;
pub use purge::PurgeCommand;
pub use quotas::{QuotaCommand, set_quota};
pub use redact::{RedactCommand, redact_tenant};
pub use tenants::{TenantCommand, create_tenant, insert_tenant};
pub use token_key::TokenKeyCommand;

use crate::app::Clock;
use crate::auth::key::ApiKey;

/// What the operator may do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Tenants.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Members.
    #[command(subcommand)]
    Member(MemberCommand),
    /// Keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Positions, after a backup was restored.
    #[command(subcommand)]
    Position(PositionCommand),
    /// How much a tenant may have.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Remove for good.
    Purge(PurgeCommand),
    /// Print a fresh key for CAIRN_TOKEN_KEYS.
    TokenKey(TokenKeyCommand),
    /// Projects.
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Show the audit log, the newest line first.
    Audit(AuditCommand),
    /// Read what is stored again and take out secrets that older patterns let pass.
    Redact(RedactCommand),
}

/// Who acts, and on what.
#[derive(Clone, Copy)]
pub struct Operator<'a> {
    /// The store of the service.
    pub store: &'a Store,
    /// The time.
    pub clock: &'a Clock,
}

impl Command {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// In words for the operator, if it cannot be done.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        match self {
            Self::Tenant(command) => command.run(operator).await,
            Self::Member(command) => command.run(operator).await,
            Self::Key(command) => command.run(operator).await,
            Self::Position(command) => command.run(operator).await,
            Self::Quota(command) => command.run(operator).await,
            Self::Purge(command) => command.run(operator).await,
            Self::TokenKey(command) => Ok(command.run()),
            Self::Project(command) => command.run(operator).await,
            Self::Audit(command) => command.run(operator).await,
            Self::Redact(command) => command.run(operator).await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "keys are drawn from the system's randomness"
)]
pub(crate) fn generate() -> ApiKey {
    ApiKey::generate(&mut rand::rng())
}

/// Tells the replicas to forget whom they let into a tenant; to be called after the commit.
fn rights_changed(store: &Store, tenant: TenantId) {
    store.bus().publish(Message::RightsChanged(tenant.uuid()));
}

async fn find_tenant(store: &Store, name: &str) -> anyhow::Result<TenantId> {
    let mut tx = store.system("admin.find_tenant").await?;
    let tenant = tx.find_tenant(name).await?;
    tx.commit().await?;
    tenant.with_context(|| format!("there is no tenant {name:?}"))
}

fn check_handle(handle: &str) -> anyhow::Result<()> {
    if !is_handle(handle) {
        bail!("a handle is 1 to 39 of a-z 0-9 . _ -, the first a letter or digit: {handle:?}");
    }
    Ok(())
}
