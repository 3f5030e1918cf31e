//! The index step: rows for a query, the best first, whatever it costs the database.

use cairn_domain::filter::Filter;
use cairn_domain::ids::TenantId;
use cairn_domain::limits;
use cairn_domain::project::Reader;
use cairn_domain::record::Row;
use cairn_domain::search::Options;
use cairn_domain::text::terms;
use cairn_store::search::Question;
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

/// The best rows of a query, as many as it asks for. One that takes too long is asked of the newest records
/// alone, so that every query has an answer.
///
/// # Errors
/// The store's.
pub async fn index(
    app: &App,
    mut tx: TenantTx,
    options: &Options,
    reader: &Reader,
) -> Result<Index, Failure> {
    let (terms, everything) = (terms(&options.query), Filter::default());
    let question = Question::new(&terms, &everything);
    let found = match tx.search(&question, reader).await {
        Err(StoreError::Timeout) => {
            let tenant = tx.tenant();
            drop(tx);
            tx = app.store.tenant(tenant, "search.recent").await?;
            let recent = Question {
                recent: true,
                ..question
            };
            tx.search(&recent, reader).await
        }
        found => found,
    }?;
    let best = found.ranked.iter().take(options.limit as usize);
    let ids: Vec<_> = best.map(|(id, _)| *id).collect();
    let rows = tx.get_rows(&ids, reader).await?;
    tx.commit().await?;
    Ok(Index {
        rows,
        partial: found.partial,
    })
}
