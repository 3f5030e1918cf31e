//! Profiles that this process has read: what ranking knows of a record is sent once, and a search
//! names the versions of the rows that it proposes. A profile holds hashes of words, and is looked
//! up only for a record that the tenant's own search proposed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_domain::ids::TenantId;
use cairn_domain::text::{Profile, profile_of_sent};
use moka::sync::Cache;
use sqlx::query_as;

use super::proposed::Proposed;
use crate::{StoreError, TenantTx};

/// Bytes that profiles may take of a process, with what it costs to keep one.
const BYTES: u64 = 48 << 20;
const OVERHEAD: usize = 160;
/// How long one is kept at most: of a record that is purged nothing stays for longer.
const AGE: Duration = Duration::from_secs(3_600);

/// A tenant's record.
type Key = (i32, i64);

/// The version of a row, and its profile.
#[derive(Clone, Debug)]
struct Held {
    version: u32,
    profile: Arc<[u8]>,
}

/// What is kept. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Profiles(Cache<Key, Held>);

impl Default for Profiles {
    fn default() -> Self {
        let weight =
            |_: &Key, held: &Held| u32::try_from(held.profile.len() + OVERHEAD).unwrap_or(u32::MAX);
        let cache = Cache::builder().max_capacity(BYTES).weigher(weight);
        Self(cache.time_to_live(AGE).build())
    }
}

impl Profiles {
    /// The profile of a proposed record, if it is that of its row's version.
    fn get(&self, tenant: TenantId, proposed: &Proposed) -> Option<Arc<[u8]>> {
        let held = self.0.get(&(tenant.key(), proposed.key))?;
        (held.version == proposed.version).then_some(held.profile)
    }
}

impl TenantTx {
    /// The profiles of proposed records, in their order; an empty one for a record that is gone
    /// since it was proposed.
    pub(super) async fn profiles(
        &mut self,
        proposed: &[Proposed],
    ) -> Result<Vec<Arc<[u8]>>, StoreError> {
        let held = proposed
            .iter()
            .map(|one| self.profiles.get(self.tenant, one));
        let held: Vec<Option<Arc<[u8]>>> = held.collect();
        let missing = proposed.iter().zip(&held);
        let missing: Vec<&Proposed> = missing
            .filter_map(|(one, held)| held.is_none().then_some(one))
            .collect();
        let mut read = HashMap::new();
        if !missing.is_empty() {
            read = self.read_profiles(&missing).await?;
        }
        let profiles = proposed.iter().zip(held);
        let profiles = profiles.map(|(one, held)| held.or_else(|| read.remove(&one.key)));
        Ok(profiles.map(Option::unwrap_or_default).collect())
    }

    async fn read_profiles(
        &mut self,
        missing: &[&Proposed],
    ) -> Result<HashMap<i64, Arc<[u8]>>, StoreError> {
        let kinds = missing.iter().map(|one| one.kind_code());
        let numbers = missing.iter().map(|one| one.key >> 2);
        let rows: Vec<(i64, i64, Vec<u8>)> = query_as(
            "select r.number * 4 + r.kind, r.xmin::text::bigint,
               search_profile(r.profile, r.tsv, r.field_lengths)
             from unnest($2::smallint[], $3::bigint[]) u (kind, number)
             cross join lateral (
               select r.kind, r.number, r.xmin, r.profile, r.tsv, r.field_lengths from records r
               where r.tenant_id = $1 and r.kind = u.kind and r.number = u.number limit 1) r",
        )
        .bind(self.tenant.key())
        .bind(kinds.collect::<Vec<_>>())
        .bind(numbers.collect::<Vec<_>>())
        .fetch_all(&mut *self.tx)
        .await?;
        let mut read = HashMap::with_capacity(rows.len());
        for (key, version, sent) in rows {
            let profile: Arc<[u8]> = match Profile::read(&sent) {
                Some(_) => sent.into(),
                None => made(&sent).unwrap_or_default().into(),
            };
            let held = Held {
                version: u32::try_from(version).unwrap_or_default(),
                profile: profile.clone(),
            };
            self.profiles.0.insert((self.tenant.key(), key), held);
            read.insert(key, profile);
        }
        Ok(read)
    }
}

/// The profile of a vector that was sent in its place: 0, its length, the lengths of its fields,
/// itself.
fn made(sent: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = sent.split_at_checked(21)?;
    let (numbers, _) = head.get(1..)?.as_chunks::<4>();
    let number = |at: usize| {
        numbers
            .get(at)
            .map_or(0, |bytes| i32::from_be_bytes(*bytes))
    };
    let vector = rest.get(..usize::try_from(number(0)).ok()?)?;
    let lengths = [number(1), number(2), number(3), number(4)];
    (head[0] == 0).then(|| profile_of_sent(vector, lengths))
}
