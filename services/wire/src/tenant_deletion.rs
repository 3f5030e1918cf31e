//! Deletion of a tenant: its name, so that nobody deletes another one by accident.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Asks for the deletion of the caller's tenant.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TenantDeletion {
    /// The tenant's name.
    pub confirm: String,
}
