//! A hook's input: one JSON value from a pipe that its writer may never close.
//!
//! Reading runs in a thread of its own, so that a pipe kept open can be left behind.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// A byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How long an unfinished value is waited for.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// How long the writer may take to send what it has still to send after the value.
const AFTERMATH: Duration = Duration::from_millis(50);

/// The input of this process.
#[derive(Debug)]
pub struct Input {
    chunks: Receiver<Vec<u8>>,
}

impl Input {
    /// Starts to read standard input.
    #[must_use]
    pub fn start() -> Self {
        let (sender, chunks) = sync_channel(16);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut buffer = vec![0; 256 * 1024];
            // An error of the pipe ends the input just as its end does.
            while let Ok(count @ 1..) = stdin.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { chunks }
    }

    /// The first JSON value, as soon as it is complete; `None` if the input ends or falls silent
    /// before that.
    pub fn value(&self) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        let mut bytes = Vec::new();
        let mut scan = Scan::default();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            bytes.extend(self.chunks.recv_timeout(left).ok()?);
            if let Some(span) = scan.advance(&bytes) {
                bytes.truncate(span.end);
                bytes.drain(..span.start);
                return Some(match String::from_utf8(bytes) {
                    Ok(text) => text,
                    Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
                });
            }
        }
    }

    /// Reads what was sent after the value, so that the writer meets no broken pipe.
    pub fn drain(&self) {
        let end = Instant::now() + AFTERMATH;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left.min(Duration::from_millis(5))) {
                Ok(_) if !left.is_zero() => {}
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Where in the input's first value we are. Hosts send objects; nothing else is waited for.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    start: Option<usize>,
    depth: usize,
    /// Where the open string's content begins.
    string: Option<usize>,
}

impl Scan {
    /// Looks at the bytes that are new; the value's place once it is complete.
    fn advance(&mut self, bytes: &[u8]) -> Option<std::ops::Range<usize>> {
        let start = match self.start {
            Some(start) => start,
            None => {
                let lead = if bytes.starts_with(MARK) {
                    MARK.len()
                } else {
                    0
                };
                let start = lead + bytes[lead..].iter().position(|b| *b == b'{')?;
                self.start = Some(start);
                self.at = start;
                start
            }
        };
        while let Some(byte) = bytes.get(self.at) {
            if let Some(string) = self.string {
                self.leave_string(bytes, string);
                continue;
            }
            self.at += 1;
            match byte {
                b'"' => self.string = Some(self.at),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            if self.depth == 0 {
                return Some(start..self.at);
            }
        }
        None
    }

    /// Goes to the next quote, where the string ends unless it is escaped: most of a payload lies
    /// in few strings, which are not looked at byte by byte.
    fn leave_string(&mut self, bytes: &[u8], string: usize) {
        // Reading from memory cannot fail.
        self.at += (&bytes[self.at..]).skip_until(b'"').unwrap_or_default();
        let Some((b'"', content)) = bytes[string..self.at].split_last() else {
            return;
        };
        let escapes = content.iter().rev().take_while(|b| **b == b'\\').count();
        if escapes % 2 == 0 {
            self.string = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(chunks: &[&[u8]]) -> Option<String> {
        let mut bytes = Vec::new();
        let mut scan = Scan::default();
        for chunk in chunks {
            bytes.extend_from_slice(chunk);
            if let Some(span) = scan.advance(&bytes) {
                return Some(String::from_utf8_lossy(&bytes[span]).into_owned());
            }
        }
        None
    }

    #[test]
    fn a_value_is_complete_with_its_last_bracket_however_it_is_cut() {
        let json = br#" {"a":"}\"","b":[{}]} "#;
        for cut in 0..json.len() {
            let found = scanned(&[&json[..cut], &json[cut..]]);
            assert_eq!(found.as_deref(), Some(r#"{"a":"}\"","b":[{}]}"#), "{cut}");
        }
    }

    #[test]
    fn c007_a_byte_order_mark_is_skipped() {
        assert_eq!(scanned(&[b"\xef\xbb\xbf{}"]).as_deref(), Some("{}"));
        assert_eq!(scanned(&[b"\xef\xbb\xbf{\"a\":"]), None);
    }

    #[test]
    fn a_hundred_thousand_brackets_are_no_trouble() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(scanned(&[deep.as_bytes()]), Some(deep));
    }
}
