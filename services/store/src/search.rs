//! The index step of a search: the SQL function proposes candidates, the domain ranks them, and
//! the rows that are shown are read through the tenant wall like any others.

use cairn_domain::ids::{RecordId, RecordKind};
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::search::Filter;
use cairn_domain::text::{Candidate, SearchTerms, Statistics, StoredVector, rank, terms};
use sqlx::postgres::PgRow;
use sqlx::{Row as _, query};

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
        let rows: Vec<RowColumns> = sqlx::query_as(concat!(
            "select ",
            row_columns!("r"),
            " from unnest($4::smallint[], $5::bigint[]) with ordinality u (kind, number, nth)
             join records r on r.tenant_id = $1 and r.kind = u.kind and r.number = u.number ",
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
