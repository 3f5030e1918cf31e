//! Telemetry: one log line an event, JSON where a machine reads it. Never memory text, and no
//! secret: each line is looked at before it is written, for errors repeat what caused them.

use std::io::{IsTerminal, Write};

use cairn_domain::redact::{redact, redact_json};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
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
    let is_read_by_people = std::io::stderr().is_terminal();
    let stderr = tracing_subscriber::fmt::layer().with_writer(Checked { is_read_by_people });
    let started = if is_read_by_people {
        registry.with(stderr.with_target(false)).try_init()
    } else {
        registry.with(stderr.json().flatten_event(true)).try_init()
    };
    if started.is_ok() {
        log_panics();
    }
    // A second start happens only where tests run several services in one process.
    drop(started);
}

/// Says where a panic was, and no more: its message may hold a piece of the text on which the program
/// failed, and to look at that here could fail again.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic");
    }));
}

/// Standard error, behind the check for secrets.
#[derive(Clone, Copy)]
struct Checked {
    is_read_by_people: bool,
}

impl<'a> MakeWriter<'a> for Checked {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            is_read_by_people: self.is_read_by_people,
            bytes: Vec::new(),
        }
    }
}

/// One line on its way.
struct Line {
    is_read_by_people: bool,
    bytes: Vec<u8>,
}

impl Line {
    /// The line as it may be written.
    fn checked(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let kept = match self.is_read_by_people {
            true => redact(&text),
            false => redact_json(&text),
        };
        kept.into_owned()
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A log that nobody can write stops nothing.
        drop(
            std::io::stderr()
                .lock()
                .write_all(self.checked().as_bytes()),
        );
    }
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

    #[test]
    fn no_line_carries_a_secret() {
        let secret = ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat();
        for is_read_by_people in [true, false] {
            let mut line = Checked { is_read_by_people }.make_writer();
            let text =
                serde_json::json!({"cause": format!("at \"{secret}\"\n"), "password": secret});
            line.write_all(format!("{text}\n").as_bytes())
                .expect("taken");
            let kept = line.checked();
            assert!(!kept.contains(&secret) && kept.ends_with("}\n"), "{kept}");
            line.bytes.clear();
        }
    }

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
