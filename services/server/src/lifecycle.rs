//! Lifecycle: serve until told to stop, then drain: not ready → wait → stop accepting → finish
//! what is in flight within the deadline → close.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cairn_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::app::App;
use crate::http;

/// How a replica goes away.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long it goes on accepting after it has said that it is not ready: a balancer's
    /// interval between checks.
    pub notice: Duration,
    /// How long requests in flight may take after that.
    pub deadline: Duration,
}

/// How long connections to the database may take to close: whoever uses one after the deadline
/// is given up.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// How often new records are moved to their places in the words index.
const CLEAN_PERIOD: Duration = Duration::from_secs(2);

/// Serves on `listener` until `shutdown` resolves, then drains.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    drain: Drain,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let stop_accepting = CancellationToken::new();
    let router = http::router(Arc::clone(&app)).into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, router)
        .with_graceful_shutdown(stop_accepting.clone().cancelled_owned());
    let mut server = tokio::spawn(server.into_future());
    let cleaning = AbortOnDropHandle::new(tokio::spawn(clean_search_index(app.store.clone())));
    tokio::select! {
        ended = &mut server => ended.context("the server task ended unasked")??,
        () = shutdown => {
            app.drain();
            tracing::info!("draining");
            tokio::time::sleep(drain.notice).await;
            stop_accepting.cancel();
            if let Ok(ended) = tokio::time::timeout(drain.deadline, &mut server).await {
                ended.context("the server task failed")??;
            } else {
                tracing::warn!("requests were still in flight at the deadline");
                server.abort();
            }
        }
    }
    drop(cleaning);
    if tokio::time::timeout(CLOSE_TIME, app.store.close())
        .await
        .is_err()
    {
        tracing::warn!("connections to the database were still in use");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Keeps the lists of new records short that every search has to read. A failure means only that
/// they wait a little longer.
async fn clean_search_index(store: Store) {
    loop {
        tokio::time::sleep(CLEAN_PERIOD).await;
        let cleaned = async {
            let mut tx = store.system("upkeep.clean_search_index").await?;
            let pages = tx.clean_search_index().await?;
            tx.commit().await.map(|()| pages)
        };
        match cleaned.await {
            Ok(pages) => tracing::trace!(pages, "words index cleaned"),
            Err(error) => tracing::debug!(%error, "words index not cleaned"),
        }
    }
}

/// Resolves at SIGTERM or SIGINT. A second signal ends the process at once.
pub async fn signalled() {
    next_signal().await;
    tokio::spawn(async {
        next_signal().await;
        std::process::exit(1);
    });
}

async fn next_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let terminate = signal(SignalKind::terminate());
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
        tracing::error!("signals cannot be received; stop the process with SIGKILL");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
