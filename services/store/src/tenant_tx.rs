//! `TenantTx`: the only way to a tenant's rows. What it can be asked stands in the file of each
//! noun; how it begins and ends stands here.

use cairn_domain::ids::TenantId;
use sqlx::{Postgres, Transaction};

use crate::StoreError;
use crate::bus::{Bus, Message};
use crate::search::profiles::Profiles;

/// A transaction inside one tenant. Row-level security confines it; dropping it rolls back.
pub struct TenantTx {
    pub(crate) tx: Transaction<'static, Postgres>,
    pub(crate) tenant: TenantId,
    pub(crate) bus: Bus,
    /// Whether a position was taken in it.
    pub(crate) profiles: Profiles,
    pub(crate) moved: bool,
}

impl TenantTx {
    /// The tenant it works in.
    #[must_use]
    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Makes everything written in it last, and tells those who wait for a new position if there
    /// is one.
    ///
    /// # Errors
    /// `Unavailable` if Postgres went away: then nothing is known of the outcome.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.tx.commit().await?;
        if self.moved {
            self.bus.publish(Message::Moved(self.tenant.uuid()));
        }
        Ok(())
    }
}
