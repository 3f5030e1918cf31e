//! `admin position`: what the operator does with positions after a backup was restored.

use clap::Subcommand;

use super::Operator;

/// What the operator does with positions.
#[derive(Clone, Debug, Subcommand)]
pub enum PositionCommand {
    /// Make every client read all changes anew: after a backup was restored in a way that the
    /// database does not show, such as a copy of its folder or a snapshot of its disk.
    Restart,
}

impl PositionCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        match self {
            Self::Restart => {
                let mut tx = operator.store.system("admin.restart_positions").await?;
                let tenants = tx.renew_epochs(operator.clock.now()).await?;
                tx.commit().await?;
                Ok(format!("clients of {tenants} tenants start again from 0"))
            }
        }
    }
}
