//! The index step: rows for a query, the best first, whatever it costs the database.

use cairn_domain::filter::Filter;
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::text::terms;
use cairn_store::search::{Found, Question};
use cairn_store::{StoreError, TenantTx};

use crate::actions::Failure;
use crate::app::App;

/// Rows that a query finds.
#[derive(Debug, Default)]
pub struct Index {
    /// The best first.
    pub rows: Vec<Row>,
    /// Whether older matches were not looked at.
    pub partial: bool,
}

/// A transaction whose statements have the time that a search may take.
///
/// # Errors
/// The store's.
pub async fn begin(app: &App, tenant: TenantId) -> Result<TenantTx, Failure> {
    let tx = app
        .store
        .tenant_within(tenant, "search.index", limits::SEARCH_TIME);
    Ok(tx.await?)
}

/// Ranks what answers a question, in a transaction of [`begin`]. One that takes too long is asked
/// of the newest records alone, so that every question has an answer; the rows are to be read in
/// the transaction that comes back.
///
/// # Errors
/// The store's.
pub async fn ranked(
    app: &App,
    mut tx: TenantTx,
    question: &Question<'_>,
    reader: &Reader,
) -> Result<(TenantTx, Found), Failure> {
    let found = match tx.search(question, reader).await {
        Err(StoreError::Timeout) => {
            tx = begin_again(app, tx).await?;
            let recent = Question {
                recent: true,
                ..*question
            };
            tx.search(&recent, reader).await
        }
        found => found,
    };
    Ok((tx, found?))
}

/// A transaction in place of one that was too slow.
///
/// # Errors
/// The store's.
pub async fn begin_again(app: &App, slow: TenantTx) -> Result<TenantTx, Failure> {
    let tenant = slow.tenant();
    drop(slow);
    Ok(app.store.tenant(tenant, "search.recent").await?)
}

/// The best `limit` rows for any of a query's rarest words, among what a filter lets pass.
///
/// # Errors
/// The store's.
pub async fn index(
    app: &App,
    tx: TenantTx,
    query: &str,
    filter: &Filter,
    limit: u32,
    reader: &Reader,
) -> Result<Index, Failure> {
    let terms = terms(query);
    let (mut tx, found) = ranked(app, tx, &Question::new(&terms, filter), reader).await?;
    let best = found.ranked.iter().take(limit as usize);
    let ids: Vec<_> = best.map(|(id, _)| *id).collect();
    let rows = tx.get_rows(&ids, reader).await?;
    tx.commit().await?;
    Ok(Index {
        rows,
        partial: found.partial,
    })
}
