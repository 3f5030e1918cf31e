//! Complaint: the one line on stderr that a hook may say, whatever and however much goes wrong.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_wire::domain::redact::redact;

static SAID: AtomicBool = AtomicBool::new(false);

/// Whether nothing was said yet.
#[must_use]
pub fn is_free() -> bool {
    !SAID.load(Ordering::Relaxed)
}

/// Says a line unless one was said before by this process.
pub fn say_once(line: &str) {
    if !SAID.swap(true, Ordering::Relaxed) {
        // Nobody listening is no reason to fail.
        let line = redact(line);
        drop(writeln!(std::io::stderr(), "{}", line.replace('\n', " ")));
    }
}
