//! The service under load: a number of connections, each with its next call as soon as the last
//! one is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::connection::Connection;
use super::corpus::Rng;
use super::measure::Measure;
use super::operation::Operation;

/// Calls operations, each as likely as another, over a number of connections for a time.
///
/// # Errors
/// At the first call that is not answered with success.
pub async fn run(
    url: &str,
    operations: &Arc<Vec<Operation>>,
    connections: usize,
    time: Duration,
    seed: u64,
) -> anyhow::Result<Measure> {
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..connections {
        let operations = Arc::clone(operations);
        let mut connected = Connection::open(url).await?;
        let mut rng = Rng::new(seed.wrapping_mul(1_000).wrapping_add(connection as u64));
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while began.elapsed() < time {
                let operation = &operations[rng.below(operations.len())];
                let sent = Instant::now();
                connected.call(operation).await?;
                latencies.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done.context("a connection's task")??);
    }
    let rate = latencies.len() as f64 / began.elapsed().as_secs_f64();
    Measure::of(rate, latencies.into_iter())
}
