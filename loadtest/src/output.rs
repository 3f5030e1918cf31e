//! What people read: lines on stdout, complaints on stderr. A reader that went away is no error.

use std::io::Write;

/// Writes a line, or several, to stdout.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes a heading to stdout.
pub fn heading(text: &str) {
    say(&format!("\n== {text}\n"));
}

/// Writes a line to stderr.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "cairn-loadtest: {text}");
}

/// A whole number with commas between its thousands.
#[must_use]
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
