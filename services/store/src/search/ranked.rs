//! Ranks the candidates of an answer, whose vectors are read where they arrived.

use std::cmp::Reverse;

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::text::{Candidate, SearchTerms, Statistics, StoredVector, rank};
use chrono::{DateTime, Utc};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgRow, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Row as _, Type};

use super::Found;
use crate::StoreError;

pub(super) fn found(row: &PgRow, terms: &SearchTerms) -> Result<Found, StoreError> {
    let ids = candidate_ids(row)?;
    let ats: Vec<DateTime<Utc>> = list(row, "ats")?;
    let shares: Vec<f64> = list(row, "shares")?;
    let lengths: Option<FieldLengths> = row.try_get("lengths")?;
    let lengths = lengths.unwrap_or_default().0;
    let sizes: Vec<i32> = list(row, "sizes")?;
    let vectors: Option<&[u8]> = row.try_get("vectors")?;
    let mut rest = vectors.unwrap_or_default();
    let mut proposed = Vec::with_capacity(ids.len());
    for (at, size) in sizes.into_iter().enumerate() {
        let size = usize::try_from(size).unwrap_or_default().min(rest.len());
        let (vector, others) = rest.split_at(size);
        rest = others;
        let candidate = Candidate {
            vector: StoredVector::new(vector),
            lengths: lengths.get(at).copied().unwrap_or_default(),
            share: shares.get(at).copied().unwrap_or(1.0),
        };
        proposed.push((ats[at], ids[at], candidate));
    }
    // Of equal scores the newer one stands first.
    proposed.sort_unstable_by_key(|(at, id, _)| Reverse((*at, id.kind.code(), id.number)));
    let candidates: Vec<Candidate<'_>> = proposed.iter().map(|(.., one)| *one).collect();
    let ranked = rank(terms, &statistics(row)?, &candidates).into_iter();
    Ok(Found {
        ranked: ranked
            .map(|place| (proposed[place.at].1, place.score))
            .collect(),
        matches: u64::try_from(row.try_get::<i64, _>("matches")?).unwrap_or_default(),
        partial: row.try_get("partial")?,
    })
}

/// Words of each field, four a candidate: an array of two dimensions, which the driver reads
/// none of.
#[derive(Default)]
struct FieldLengths(Vec<[i32; 4]>);

impl Type<Postgres> for FieldLengths {
    fn type_info() -> PgTypeInfo {
        <[i32] as Type<Postgres>>::type_info()
    }
}

impl<'r> Decode<'r, Postgres> for FieldLengths {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        /// Dimensions, flags, the type of items, and twice a length with its lower bound.
        const HEAD: usize = 12 + 2 * 8;
        let items = value.as_bytes()?.get(HEAD..).unwrap_or_default();
        // Each item is its length, which is four, and itself.
        let (numbers, _) = items.as_chunks::<8>();
        let number = |[_, _, _, _, a, b, c, d]: &[u8; 8]| i32::from_be_bytes([*a, *b, *c, *d]);
        let (rows, _) = numbers.as_chunks::<4>();
        Ok(Self(
            rows.iter().map(|row| row.each_ref().map(number)).collect(),
        ))
    }
}

fn candidate_ids(row: &PgRow) -> Result<Vec<RecordId>, StoreError> {
    let kinds: Vec<i16> = list(row, "found_kinds")?;
    let numbers: Vec<i64> = list(row, "found_numbers")?;
    let id = |(kind, number): (i16, i64)| {
        let kind = RecordKind::from_code(kind)
            .ok_or_else(|| StoreError::inconsistent("records", "kind", number))?;
        Ok(RecordId { kind, number })
    };
    kinds.into_iter().zip(numbers).map(id).collect()
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

/// A list that is null where it is empty.
fn list<'r, T>(row: &'r PgRow, column: &str) -> Result<Vec<T>, StoreError>
where
    Option<Vec<T>>: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let values: Option<Vec<T>> = row.try_get(column)?;
    Ok(values.unwrap_or_default())
}
