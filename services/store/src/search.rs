//! Searching: the SQL functions propose candidates, or walk through what matches in the order of
//! time; the domain ranks, and the rows that are shown are read through the tenant wall like any
//! others.

mod conditions;
mod in_time;
pub(crate) mod profiles;
mod proposed;
mod ranked;

use cairn_domain::filter::Filter;
use cairn_domain::ids::RecordId;
use cairn_domain::limits;
use cairn_domain::listing::Horizon;
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::text::SearchTerms;
use sqlx::query;

pub use in_time::Walk;

use crate::records::row::{
    RowColumns, project_keys, readable, records_by_id, row_columns, row_joins,
};
use crate::records::split;
use crate::{StoreError, TenantTx};
use conditions::{bind_conditions, conditions};

/// As many records may hold the terms that propose candidates: more find nothing better, and the
/// work stays the same however large a tenant is.
const BUDGET: i32 = 1_000;
/// How many of the newest matches are looked at.
const NEWEST: i32 = 2_000;
/// How many of the newest records stand in for the index when a query takes too long.
const RECENT: i32 = 2_000;

/// What of a query's words a record must match to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Any of the query's rarest words; the others count in the ranking. Finds the most.
    Rarest,
    /// Every word of the query.
    All,
    /// Any word of the query.
    Any,
}

impl Words {
    /// The condition on a record's terms; `None` without terms, and where they are looked up.
    fn condition(self, terms: &SearchTerms) -> Option<String> {
        match self {
            _ if terms.is_empty() => None,
            Self::Rarest => None,
            Self::All => Some(terms.all()),
            Self::Any => Some(terms.any()),
        }
    }
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
    /// Only records that existed then.
    pub upto: Option<Horizon>,
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
    /// Ids and scores of the ranked candidates; at most [`limits::RANKED`].
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
        let sql = concat!(
            "select * from search_places(",
            conditions!(),
            ", $17, $18, $19::text[]::tsquery[], $20, $21, $22)"
        );
        let row = bind_conditions(query(sql), question, reader, self.tenant)
            .bind(asked.iter().map(|a| a.term.as_str()).collect::<Vec<_>>())
            .bind(asked.iter().map(|a| a.leads).collect::<Vec<_>>())
            .bind(vec![terms.all(), terms.pairs(), terms.any()])
            .bind(BUDGET)
            .bind(NEWEST)
            .bind(i32::try_from(limits::RANKED).unwrap_or(i32::MAX))
            .fetch_one(&mut *self.tx)
            .await?;
        self.rank(&row, terms).await
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
            " from",
            records_by_id!(),
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
}
