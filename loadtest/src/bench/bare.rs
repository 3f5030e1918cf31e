//! A bare route: answers with bytes that it holds, and does nothing else. What the service does
//! beside sending a context is what it is slower than this.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nix::sys::signal::Signal;

use super::rig::free_address;
use crate::process::Running;
use crate::service::clean_environment;

/// What it may take to start.
const START_TIME: Duration = Duration::from_secs(10);

/// The bare route as a process of its own.
pub struct Bare {
    /// Its address.
    pub url: String,
    running: Running,
}

impl Bare {
    /// Starts it over the files `0`, `1`, … of a folder.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(files: &std::path::Path) -> anyhow::Result<Self> {
        let listen = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        clean_environment(&mut command, files);
        command
            .args(["bare", "--listen", &listen, "--files"])
            .arg(files);
        command.stdout(Stdio::null());
        let mut running = Running::start("bare", &mut command, files, Signal::SIGTERM)?;
        running.wait_until(START_TIME, || TcpStream::connect(&listen).is_ok())?;
        Ok(Self {
            url: format!("http://{listen}"),
            running,
        })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }
}

/// What to answer, and where.
#[derive(clap::Args)]
pub struct Options {
    /// The address to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// The folder with the files `0`, `1`, ….
    #[arg(long)]
    files: PathBuf,
}

/// Answers until it is stopped.
///
/// # Errors
/// If there are no files or the address is taken.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let mut bodies = Vec::new();
    while let Ok(body) = std::fs::read(options.files.join(bodies.len().to_string())) {
        bodies.push(Bytes::from(body));
    }
    let routes = Router::new()
        .route("/{nth}", get(answer))
        .with_state(Arc::new(bodies));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(options.listen).await;
        let listener = listener.context("listening")?;
        axum::serve(listener, routes).await.context("answering")
    })
}

/// With the headers that the service sends.
async fn answer(State(bodies): State<Arc<Vec<Bytes>>>, Path(nth): Path<usize>) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CACHE_CONTROL, "private, no-store"),
    ];
    match bodies.get(nth) {
        Some(body) => (headers, body.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
