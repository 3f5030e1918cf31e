//! What its author, or an admin, may do to a record once it stands.

use cairn_domain::Rejection;
use cairn_domain::event::Visibility;
use cairn_domain::ids::RecordId;
use cairn_domain::record::Record;
use cairn_domain::scope::Scope;
use cairn_store::TenantTx;
use cairn_store::records::{Deleted, Promoted};

use crate::actions::Failure;
use crate::actions::projects::place_by_id;
use crate::app::App;
use crate::auth::Caller;

const NO_WAY_BACK: &str = "what the team may read stays so; delete it instead";
const NOT_YOURS: &str = "only its author may change who reads it";

/// Sets who may read a record of the caller's: `team` for a private one. To set what is set is no
/// error; there is no way back.
///
/// # Errors
/// `not_found` if it is missing or not the caller's to see; `conflict` for a way back and for
/// what another wrote; a lacking scope or an unavailable store.
pub async fn promote(
    app: &App,
    caller: &Caller,
    id: RecordId,
    wanted: Visibility,
) -> Result<Record, Failure> {
    caller.require(Scope::MemoryWrite)?;
    let _turn = app.store.turn(caller.tenant).await?;
    let mut tx = app
        .store
        .tenant(caller.tenant, "observations.promote")
        .await?;
    let reader = place_by_id(&mut tx, caller, None).await?.reader;
    if wanted == Visibility::Private {
        let record = read(&mut tx, id, &reader).await?;
        // A private one that can be read is the caller's own.
        return match record.visibility {
            Visibility::Private => Ok(record),
            Visibility::Team => Err(Rejection::Conflict(NO_WAY_BACK.to_owned()).into()),
        };
    }
    match tx.promote_record(id, &reader, app.clock.now()).await? {
        Promoted::Done => {
            let record = read(&mut tx, id, &reader).await?;
            tx.commit().await?;
            Ok(record)
        }
        Promoted::NotFound => Err(Rejection::NotFound.into()),
        Promoted::Forbidden => Err(Rejection::Conflict(NOT_YOURS.to_owned()).into()),
    }
}

async fn read(
    tx: &mut TenantTx,
    id: RecordId,
    reader: &cairn_domain::project::Reader,
) -> Result<Record, Failure> {
    let mut found = tx.get_records(&[id], reader).await?;
    found.pop().ok_or_else(|| Rejection::NotFound.into())
}

/// Deletes a record for good. Doing it again is no error.
///
/// # Errors
/// `not_found` if it never was or is not the caller's to see; `insufficient_scope` if somebody
/// else wrote it and the caller is no admin.
pub async fn delete(app: &App, caller: &Caller, id: RecordId) -> Result<(), Failure> {
    caller.require(Scope::MemoryWrite)?;
    let _turn = app.store.turn(caller.tenant).await?;
    let mut tx = app
        .store
        .tenant(caller.tenant, "observations.delete")
        .await?;
    let place = place_by_id(&mut tx, caller, None).await?;
    let now = app.clock.now();
    match tx
        .delete_record(id, &place.reader, caller.is_admin(), now)
        .await?
    {
        Deleted::Done => {
            tx.commit().await?;
            Ok(())
        }
        Deleted::NotFound => Err(Rejection::NotFound.into()),
        Deleted::Forbidden => Err(Rejection::InsufficientScope(Scope::TenantAdmin).into()),
    }
}
