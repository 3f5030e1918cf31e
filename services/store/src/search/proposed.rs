//! What the index proposes, as `search_places` packs it.

use cairn_domain::ids::{RecordId, RecordKind};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::StoreError;

/// Bytes of one record: its key, the version of its row, its time.
const PACKED: usize = 20;

/// A record that is to be ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Proposed {
    /// Its number * 4 + kind.
    pub key: i64,
    /// The transaction that wrote its row: with another one it may hold other words.
    pub version: u32,
    /// Microseconds since 2000.
    pub at: i64,
    /// What a match is worth at its age; 1 where every match was looked at.
    pub share: f64,
}

impl Proposed {
    /// All of an answer, in no order.
    pub fn read(row: &PgRow) -> Result<Vec<Self>, StoreError> {
        let places: Option<&[u8]> = row.try_get("places")?;
        let shares: Option<Vec<f64>> = row.try_get("shares")?;
        let (places, _) = places.unwrap_or_default().as_chunks::<PACKED>();
        let shares = shares.unwrap_or_default();
        let proposed = places.iter().enumerate().map(|(nth, packed)| {
            let share = shares.get(nth).copied().unwrap_or(1.0);
            unpack(packed, share)
        });
        Ok(proposed.collect())
    }

    /// The record's id.
    pub fn id(&self) -> Result<RecordId, StoreError> {
        let number = self.key >> 2;
        let kind = RecordKind::from_code(self.kind_code());
        let kind = kind.ok_or_else(|| StoreError::inconsistent("records", "kind", number))?;
        Ok(RecordId { kind, number })
    }

    /// The code of its kind.
    pub const fn kind_code(&self) -> i16 {
        (self.key & 3) as i16
    }
}

fn unpack(packed: &[u8; PACKED], share: f64) -> Proposed {
    let [k0, k1, k2, k3, k4, k5, k6, k7, v0, v1, v2, v3, at @ ..] = *packed;
    Proposed {
        key: i64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
        version: u32::from_be_bytes([v0, v1, v2, v3]),
        at: i64::from_be_bytes(at),
        share,
    }
}
