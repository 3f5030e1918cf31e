//! Telemetry: one log line an event, JSON where a machine reads it. Never memory text.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The protocol library warns of every mistake of a caller; those are answered, not logged. What
/// Postgres has to notice of a migration that is there already helps nobody.
const QUIET: &str = "rmcp=error,sqlx::postgres::notice=warn";

/// Starts logging to stderr at `level`, a filter like `info` or `cairn_server=debug`. A filter
/// that cannot be read counts as `info`.
pub fn start(level: &str) {
    let filter = filter(level);
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

/// The filter of a level; one that names the protocol library itself counts for it.
fn filter(level: &str) -> EnvFilter {
    let whole = if level.contains("rmcp") {
        level.to_owned()
    } else {
        format!("{level},{QUIET}")
    };
    EnvFilter::try_new(whole).unwrap_or_else(|_| EnvFilter::new(format!("info,{QUIET}")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("info", "rmcp=error,info,sqlx::postgres::notice=warn")]
    #[case("rmcp=debug,warn", "rmcp=debug,warn")]
    #[case(
        "cairn_server=debug",
        "cairn_server=debug,rmcp=error,sqlx::postgres::notice=warn"
    )]
    #[case("=,=", "rmcp=error,info,sqlx::postgres::notice=warn")]
    fn the_protocol_library_is_quiet_unless_asked(#[case] level: &str, #[case] whole: &str) {
        let mut parts: Vec<String> = filter(level)
            .to_string()
            .split(',')
            .map(str::to_owned)
            .collect();
        parts.sort();
        let mut expected: Vec<&str> = whole.split(',').collect();
        expected.sort_unstable();
        assert_eq!(parts, expected);
    }
}
