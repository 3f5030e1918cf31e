//! Telemetry: one log line an event, JSON where a machine reads it. Never memory text.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging to stderr at `level`, a filter like `info` or `cairn_server=debug`. A filter
/// that cannot be read counts as `info`.
pub fn start(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter);
    let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let started = if std::io::stderr().is_terminal() {
        registry.with(stderr.with_target(false)).try_init()
    } else {
        registry.with(stderr.json().flatten_event(true)).try_init()
    };
    // A second start happens only where tests run several services in one process.
    drop(started);
}
