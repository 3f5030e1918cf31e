//! Ranks what the index proposes.

use std::cmp::Reverse;

use cairn_domain::ids::RecordId;
use cairn_domain::text::{Candidate, Profile, SearchTerms, Statistics, rank};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::Found;
use super::proposed::Proposed;
use crate::{StoreError, TenantTx};

impl TenantTx {
    pub(super) async fn rank(
        &mut self,
        row: &PgRow,
        terms: &SearchTerms,
    ) -> Result<Found, StoreError> {
        let mut proposed = Proposed::read(row)?;
        // Of equal scores the newer one stands first.
        proposed.sort_unstable_by_key(|one| Reverse((one.at, one.kind_code(), one.key)));
        let profiles = self.profiles(&proposed).await?;
        let candidates = proposed.iter().zip(&profiles);
        let candidates: Vec<Candidate<'_>> = candidates
            .map(|(one, sent)| Candidate {
                profile: Profile::read(sent)
                    .map(|(profile, _)| profile)
                    .unwrap_or_default(),
                share: one.share,
            })
            .collect();
        let ranked = rank(terms, &statistics(row)?, &candidates).into_iter();
        let ranked: Vec<(RecordId, f64)> = ranked
            .map(|place| Ok((proposed[place.at].id()?, place.score)))
            .collect::<Result<_, StoreError>>()?;
        Ok(Found {
            ranked,
            matches: u64::try_from(row.try_get::<i64, _>("matches")?).unwrap_or_default(),
            partial: row.try_get("partial")?,
        })
    }
}

fn statistics(row: &PgRow) -> Result<Statistics, StoreError> {
    let counts: Option<Vec<Option<i64>>> = row.try_get("counts")?;
    let lengths: Option<Vec<f32>> = row.try_get("field_lengths")?;
    let records: i64 = row.try_get("records")?;
    let counts = counts.unwrap_or_default().into_iter();
    Ok(Statistics {
        records: records as f64,
        counts: counts
            .map(|count| count.map(|count| count as f64))
            .collect(),
        lengths: lengths.and_then(|lengths| {
            let lengths: [f32; 4] = lengths.try_into().ok()?;
            Some(lengths.map(f64::from))
        }),
    })
}
