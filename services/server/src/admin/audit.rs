//! `admin audit`: the audit log from the machine that runs the service.

use cairn_store::audit::{AuditLine, AuditPick};
use clap::Args;

use super::{Operator, find_tenant};

/// Which lines the operator wants.
#[derive(Clone, Debug, Args)]
pub struct AuditCommand {
    /// The tenant's name.
    tenant: String,
    /// What this handle, or key:<key id>, did.
    #[arg(long)]
    actor: Option<String>,
    /// This action alone, such as member.remove.
    #[arg(long)]
    action: Option<String>,
    /// How many lines.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl AuditCommand {
    /// Answers the lines.
    ///
    /// # Errors
    /// If there is no such tenant, or the store is unavailable.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let tenant = find_tenant(operator.store, &self.tenant).await?;
        let mut tx = operator.store.tenant(tenant, "admin.audit").await?;
        let pick = AuditPick {
            actor: self.actor.as_deref(),
            action: self.action.as_deref(),
            limit: self.limit,
            ..AuditPick::default()
        };
        let lines = tx.list_audit(&pick).await?;
        tx.commit().await?;
        let line = |line: &AuditLine| {
            format!(
                "{}  {}  {}  {}  {}",
                cairn_wire::time::text(line.at),
                line.actor.as_deref().unwrap_or("operator"),
                line.action,
                line.target,
                line.detail
            )
        };
        Ok(lines.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}
