//! Ranks the candidates of an answer, whose vectors are read where they arrived.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::text::{Candidate, SearchTerms, Statistics, StoredVector, rank};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::Found;
use crate::StoreError;

pub(super) fn found(row: &PgRow, terms: &SearchTerms) -> Result<Found, StoreError> {
    let ids = candidate_ids(row)?;
    let shares: Vec<f64> = list(row, "shares")?;
    let sizes: Vec<i32> = list(row, "sizes")?;
    let vectors: Option<&[u8]> = row.try_get("vectors")?;
    let mut rest = vectors.unwrap_or_default();
    let fields: [Vec<i32>; 4] = [
        list(row, "titles")?,
        list(row, "proses")?,
        list(row, "facts")?,
        list(row, "files")?,
    ];
    let mut candidates = Vec::with_capacity(ids.len());
    for (at, size) in sizes.into_iter().enumerate() {
        let size = usize::try_from(size).unwrap_or_default().min(rest.len());
        let (vector, others) = rest.split_at(size);
        rest = others;
        candidates.push(Candidate {
            vector: StoredVector::new(vector),
            lengths: [0, 1, 2, 3].map(|field: usize| fields[field].get(at).copied().unwrap_or(0)),
            share: shares.get(at).copied().unwrap_or(1.0),
        });
    }
    let ranked = rank(terms, &statistics(row)?, &candidates);
    let mut found = Found {
        ranked: Vec::with_capacity(ranked.len()),
        matches: u64::try_from(row.try_get::<i64, _>("matches")?).unwrap_or_default(),
        partial: row.try_get("partial")?,
    };
    for place in ranked {
        let id = ids[place.at];
        // One that several stages proposed stands where its best copy does.
        if found.ranked.iter().all(|(other, _)| *other != id) {
            found.ranked.push((id, place.score));
        }
    }
    Ok(found)
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
