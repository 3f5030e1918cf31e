//! Auth: from an Authorization header to a [`Caller`], once, in one layer.

pub mod attempts;
mod cache;
mod grant;
pub mod key;
pub mod layer;
pub mod secret;
pub mod token;

use cairn_domain::Rejection;
use cairn_domain::event::{SessionKey, Visibility};
use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::project::Project;
use cairn_domain::scope::{Role, Scope, Scopes};
use cairn_domain::search::View;
use cairn_store::{StoreError, TenantTx};
use cairn_wire::Problem;
use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use cache::CredentialCache;

/// A verified request: who asks, what they may do, and where they stand.
///
/// Made by the layer alone; a handler that needs a tenant must take one of these.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant, proven by the credential.
    pub tenant: TenantId,
    /// The credential's id.
    pub credential: Uuid,
    /// The member or the service key.
    pub principal: PrincipalId,
    /// The member's handle, or `key:<key id>`.
    pub name: String,
    /// The member's role; none for a service key.
    pub role: Option<Role>,
    /// What the credential and the role both allow.
    pub scopes: Scopes,
    /// The only project the credential may see, if it is limited to one.
    pub project_limit: Option<Project>,
    /// When the credential ends.
    pub expires_at: DateTime<Utc>,
    /// Header `Cairn-Project`: id, key or name of the current project, decoded.
    pub current_project: Option<String>,
    /// Header `Cairn-Session`: the host and its id of the session, `<host>/<id>`, decoded.
    pub session: Option<SessionKey>,
    /// Header `Cairn-Visibility`: who may read what the caller stores without saying so.
    pub visibility: Visibility,
}

impl Caller {
    /// What the caller may see of a record.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            evidence: self.scopes.contains(Scope::EvidenceRead),
        }
    }

    /// Demands a scope.
    ///
    /// # Errors
    /// `insufficient_scope` if the caller lacks it.
    pub fn require(&self, scope: Scope) -> Result<(), Rejection> {
        if self.scopes.contains(scope) {
            Ok(())
        } else {
            Err(Rejection::InsufficientScope(scope))
        }
    }

    /// Demands several scopes at once: a caller that lacks one is told all of them.
    ///
    /// # Errors
    /// `insufficient_scope` naming all of them if the caller lacks any.
    pub fn require_all(&self, scopes: &[Scope]) -> Result<(), Problem> {
        let lacking = scopes.iter().find(|scope| !self.scopes.contains(**scope));
        lacking.map_or(Ok(()), |lacking| {
            Err(Problem {
                scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
                ..Rejection::InsufficientScope(*lacking).into()
            })
        })
    }

    /// Demands a scope for what concerns the whole tenant, which a credential that is limited to a
    /// project sees nothing of, whatever it carries.
    ///
    /// # Errors
    /// `insufficient_scope`.
    pub fn require_for_tenant(&self, scope: Scope) -> Result<(), Problem> {
        self.require(scope)?;
        match self.project_limit {
            None => Ok(()),
            Some(_) => Err(Problem {
                detail: Some("this needs a credential without a project limit".to_owned()),
                ..Rejection::InsufficientScope(scope).into()
            }),
        }
    }

    /// Whether the credential is still good, and for this. Asked by what goes on for longer than a
    /// request, each time before it goes on.
    ///
    /// # Errors
    /// The store's.
    pub async fn may_still(
        &self,
        tx: &mut TenantTx,
        scope: Scope,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let scopes = tx.scopes_in_force(self.credential, now).await?;
        Ok(scopes.is_some_and(|scopes| scopes.contains(scope)))
    }

    /// Whether the caller may act on what others wrote.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.scopes.contains(Scope::TenantAdmin)
    }
}
