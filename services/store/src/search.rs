//! The index step of a search: the SQL function proposes candidates, the domain ranks them, and
//! the rows that are shown are read through the tenant wall like any others.

use std::cmp::Reverse;
use std::collections::HashSet;

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::search::Filter;
use cairn_domain::text::{Candidate, SearchTerms, Statistics, StoredVector, rank, terms};
use chrono::{DateTime, Utc};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgRow, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Row as _, Type, query};

use crate::records::row::{RowColumns, project_keys, readable, row_columns, row_joins};
use crate::records::split;
use crate::{StoreError, TenantTx};

/// As many records may hold the terms that propose candidates: more find nothing better, and the
/// work stays the same however large a tenant is.
const BUDGET: i32 = 1_000;
/// How many of the newest matches are looked at.
const NEWEST: i32 = 2_000;
/// How many of them are ranked.
const KEPT: i32 = 300;
/// How many of the newest records stand in for the index when a query takes too long.
const RECENT: i32 = 2_000;

/// What a record must match to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Any of the query's rarest words; the others count in the ranking. Finds the most.
    Rarest,
    /// Every word of the query.
    All,
    /// Any word of the query.
    Any,
}

/// What is asked of the index.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The query's terms.
    pub terms: &'a SearchTerms,
    /// What of them must match.
    pub words: Words,
    /// What else must hold.
    pub filter: &'a Filter,
    /// Only records up to this position.
    pub upto: Option<i64>,
    /// Whether the newest records alone are looked at: the way out for a question that took
    /// too long.
    pub recent: bool,
}

impl<'a> Question<'a> {
    /// Any of the rarest words, in all of the reader's records.
    #[must_use]
    pub const fn new(terms: &'a SearchTerms, filter: &'a Filter) -> Self {
        Self {
            terms,
            words: Words::Rarest,
            filter,
            upto: None,
            recent: false,
        }
    }
}

/// What answers a question, the best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Ids and scores of the ranked candidates; at most 300.
    pub ranked: Vec<(RecordId, f64)>,
    /// How many records matched; at least so many if the answer is partial.
    pub matches: u64,
    /// Whether older matches were not looked at.
    pub partial: bool,
}

impl TenantTx {
    /// Ranks what answers a question. A query without words finds nothing.
    ///
    /// # Errors
    /// `Timeout` if the words are too common for the time a statement has; ask again, in a new
    /// transaction, for `recent` ones.
    pub async fn search(
        &mut self,
        question: &Question<'_>,
        reader: &Reader,
    ) -> Result<Found, StoreError> {
        let terms = question.terms;
        if terms.is_empty() || reader.projects.is_empty() {
            return Ok(Found::default());
        }
        let asked = terms.asked();
        let filter = question.filter;
        let words = match question.words {
            Words::Rarest => None,
            Words::All => Some(terms.all()),
            Words::Any => Some(terms.any()),
        };
        let row = query(
            "select * from search_candidates($1, $2, $3::text::tsquery, $4::text[]::tsquery[],
               $5::text::tsquery, $6, $7, $8, $9, $10,
               (select case when $11::text is not null then coalesce((select principal_id
                  from principals where tenant_id = $21 and name = $11), 0) end),
               (select case when $12::text is not null then array(select session_id from sessions
                  where tenant_id = $21 and host_session_id = $12) end),
               $13, $14, $15, $16, $17, $18, $19, $20)",
        )
        .bind(asked.iter().map(|a| a.term.as_str()).collect::<Vec<_>>())
        .bind(asked.iter().map(|a| a.leads).collect::<Vec<_>>())
        .bind(words)
        .bind(vec![terms.all(), terms.pairs(), terms.any()])
        .bind(file_words(filter))
        .bind(project_keys(&reader.projects))
        .bind(reader.principal.key)
        .bind(some(filter.kinds.iter().map(|kind| kind.code())))
        .bind(some(filter.types.iter().map(|kind| kind.code())))
        .bind(some(filter.concepts.iter().map(|concept| concept.name())))
        .bind(filter.author.as_deref())
        .bind(filter.session.as_deref())
        .bind(filter.since)
        .bind(filter.until)
        .bind(question.upto)
        .bind(some(filter.files.iter().map(String::as_str)))
        .bind(question.recent.then_some(RECENT))
        .bind(BUDGET)
        .bind(NEWEST)
        .bind(KEPT)
        .bind(self.tenant.key())
        .fetch_one(&mut *self.tx)
        .await?;
        found(&row, terms)
    }

    /// The rows of these ids that the reader may read, in the order asked; others are left out.
    ///
    /// # Errors
    /// `Inconsistent` if a row holds a value of no meaning.
    pub async fn get_rows(
        &mut self,
        ids: &[RecordId],
        reader: &Reader,
    ) -> Result<Vec<Row>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (kinds, numbers) = split(ids);
        // One row each, by its key: left to choose, the planner might read a whole tenant's.
        let rows: Vec<RowColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            " from unnest($4::smallint[], $5::bigint[]) with ordinality u (kind, number, nth)
             cross join lateral (select * from records r where r.tenant_id = $1 and r.kind = u.kind
               and r.number = u.number limit 1) r ",
            row_joins!("r"),
            " where ",
            readable!("r"),
            " order by u.nth",
        ))
        .bind(self.tenant.key())
        .bind(reader.principal.key)
        .bind(project_keys(&reader.projects))
        .bind(kinds)
        .bind(numbers)
        .fetch_all(&mut *self.tx)
        .await?;
        rows.into_iter().map(RowColumns::read).collect()
    }

    /// The best `limit` rows that hold any of a query's rarest words.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn search_index(
        &mut self,
        terms: &SearchTerms,
        reader: &Reader,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        let everything = Filter::default();
        let found = self
            .search(&Question::new(terms, &everything), reader)
            .await?;
        let best = found.ranked.iter().take(limit as usize);
        let ids: Vec<RecordId> = best.map(|(id, _)| *id).collect();
        self.get_rows(&ids, reader).await
    }
}

/// What a record that touches one of the files holds in its words.
fn file_words(filter: &Filter) -> Option<String> {
    let words = filter.files.iter().map(|file| terms(file).all());
    let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    // A name of signs alone has no words: then the files themselves decide.
    let complete = !words.is_empty() && words.len() == filter.files.len();
    complete.then(|| format!("({})", words.join(") | (")))
}

fn some<T>(values: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    (values.len() > 0).then(|| values.collect())
}

/// Ranks the candidates of an answer, whose vectors are read where they arrived.
fn found(row: &PgRow, terms: &SearchTerms) -> Result<Found, StoreError> {
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
    let mut ranked = Vec::new();
    let mut seen = HashSet::new();
    for place in rank(terms, &statistics(row)?, &candidates) {
        let id = proposed[place.at].1;
        // One that several stages proposed stands where its best copy does.
        if seen.insert(id) {
            ranked.push((id, place.score));
        }
    }
    Ok(Found {
        ranked,
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
