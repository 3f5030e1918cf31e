//! Lifecycle: serve until told to stop, then drain: not ready → wait → stop accepting → finish
//! what is in flight within the deadline → close.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::http::Request;
use axum::serve::Listener;
use cairn_domain::limits;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::app::App;
use crate::expiry::keep_expiring;
use crate::http;
use crate::http::peer::Connected;
use crate::patient::Patient;
use crate::upkeep::keep_up;

/// How a replica goes away.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long it goes on accepting after it has said that it is not ready: a balancer's
    /// interval between checks.
    pub notice: Duration,
    /// How long everything after that may take, to the end of the process.
    pub deadline: Duration,
}

impl Drain {
    /// How long requests in flight may take.
    fn request_time(self) -> Duration {
        self.deadline - self.close_time() - self.database_time()
    }

    /// How long connections to the database may take to close: whoever uses one after the
    /// requests' time is given up.
    fn close_time(self) -> Duration {
        self.deadline.div_f32(16.0).min(Duration::from_secs(1))
    }

    /// How long a database of our own may take to stop.
    #[must_use]
    pub fn database_time(self) -> Duration {
        self.close_time() * 3
    }
}

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
    let router = http::router(Arc::clone(&app));
    let server = answer_connections(listener, router, stop_accepting.clone());
    let mut server = AbortOnDropHandle::new(tokio::spawn(server));
    let upkeep =
        AbortOnDropHandle::new(tokio::spawn(keep_up(app.store.clone(), app.clock.clone())));
    let streams = AbortOnDropHandle::new(tokio::spawn(keep_streams(Arc::clone(&app))));
    let counting = AbortOnDropHandle::new(tokio::spawn({
        let app = Arc::clone(&app);
        async move { app.usage.keep_handing_in(&app).await }
    }));
    let expiry = keep_expiring(app.store.clone(), app.clock.clone());
    let expiry = AbortOnDropHandle::new(tokio::spawn(expiry));
    tokio::select! {
        ended = &mut server => ended.context("the server task ended unasked")?,
        () = shutdown => {
            app.drain();
            tracing::info!("draining");
            tokio::time::sleep(drain.notice).await;
            stop_accepting.cancel();
            app.streams.stop();
            if let Ok(ended) = tokio::time::timeout(drain.request_time(), &mut server).await {
                ended.context("the server task failed")?;
            } else {
                tracing::warn!("requests were still in flight at the deadline");
            }
        }
    }
    drop((server, upkeep, streams, counting, expiry));
    let close = async {
        app.usage.hand_in(&app).await;
        app.store.close().await;
    };
    if tokio::time::timeout(drain.close_time(), close)
        .await
        .is_err()
    {
        tracing::warn!("connections to the database were still in use");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Listens to the other replicas and looks for what streams wait for, until it is dropped.
async fn keep_streams(app: Arc<App>) {
    tokio::join!(app.listen(), app.streams.watch());
}

/// Answers each connection in a task of its own, until told to stop; then waits for those with a
/// request in flight. Dropping it drops the connections.
async fn answer_connections(mut listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIME);
    let open = GracefulShutdown::new();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            (stream, address) = Listener::accept(&mut listener) => {
                let connected = Connected(address.ip());
                let router = router.clone().map_request(move |mut request: Request<Incoming>| {
                    request.extensions_mut().insert(connected);
                    request
                });
                let service = TowerToHyperService::new(router);
                let stream = TokioIo::new(Patient::new(stream, limits::STREAM_STALL));
                let connection = open.watch(http.serve_connection(stream, service));
                tasks.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::trace!(%error, "connection broken off");
                    }
                });
            }
            Some(_) = tasks.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    drop(listener);
    open.shutdown().await;
}

/// SIGTERM and SIGINT, received from the moment this exists: a signal that comes while the service
/// is still starting stops it in order too.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts receiving.
    ///
    /// # Errors
    /// If the system lets nobody receive signals.
    pub fn receive() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves at the first signal. A second one ends the process at once.
    pub async fn first(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(1);
        });
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
