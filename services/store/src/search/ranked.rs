//! Ranks the candidates of an answer, whose profiles are read where they arrived.

use std::borrow::Cow;
use std::cmp::Reverse;

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::text::{Candidate, Profile, SearchTerms, Statistics, profile_of_sent, rank};
use chrono::{DateTime, Utc};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::Found;
use crate::StoreError;

pub(super) fn found(row: &PgRow, terms: &SearchTerms) -> Result<Found, StoreError> {
    let ids: Vec<i64> = list(row, "ids")?;
    let ats: Vec<DateTime<Utc>> = list(row, "ats")?;
    let shares: Vec<f64> = list(row, "shares")?;
    let sent: Option<&[u8]> = row.try_get("profiles")?;
    let profiles = profiles(sent.unwrap_or_default());
    let mut proposed = Vec::with_capacity(ids.len());
    for (at, id) in ids.into_iter().enumerate() {
        let profile = profiles.get(at).and_then(|sent| Profile::read(sent));
        let candidate = Candidate {
            profile: profile.map(|(profile, _)| profile).unwrap_or_default(),
            share: shares.get(at).copied().unwrap_or(1.0),
        };
        proposed.push((ats.get(at).copied(), record_id(id)?, candidate));
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

/// The profiles that were sent one behind the other; those of rows without one are made here.
fn profiles(sent: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut rest = sent;
    let mut profiles = Vec::new();
    while !rest.is_empty() {
        let next = match Profile::read(rest) {
            Some((_, after)) => {
                let own = &rest[..rest.len() - after.len()];
                Some((Cow::Borrowed(own), after))
            }
            None => made(rest),
        };
        let Some((profile, after)) = next else { break };
        profiles.push(profile);
        rest = after;
    }
    profiles
}

/// The profile of a vector that was sent in its place: 0, its length, the lengths of its fields,
/// itself.
fn made(sent: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let (head, rest) = sent.split_at_checked(21)?;
    let (numbers, _) = head.get(1..)?.as_chunks::<4>();
    let number = |at: usize| {
        numbers
            .get(at)
            .map_or(0, |bytes| i32::from_be_bytes(*bytes))
    };
    let (vector, after) = rest.split_at_checked(usize::try_from(number(0)).ok()?)?;
    let made = profile_of_sent(vector, [number(1), number(2), number(3), number(4)]);
    (head[0] == 0).then_some((Cow::Owned(made), after))
}

/// The record that is sent as number * 4 + kind.
fn record_id(sent: i64) -> Result<RecordId, StoreError> {
    let number = sent >> 2;
    let kind = i16::try_from(sent & 3).ok().and_then(RecordKind::from_code);
    let kind = kind.ok_or_else(|| StoreError::inconsistent("records", "kind", number))?;
    Ok(RecordId { kind, number })
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
