//! The lines of a body as they arrive: one at a time in memory, counted and digested, so that a
//! file that was cut off or changed is known for one at its end.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use cairn_domain::hex::hex;
use cairn_domain::limits;
use cairn_wire::export::{ExportEnd, ExportHead, FORM};
use cairn_wire::{Code, Problem};
use http_body_util::BodyExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::actions::Failure;

/// Kinds of lines that are counted apart: more than there are.
const KINDS: usize = 32;

/// How the last line of an export begins.
const END: &[u8] = b"{\"cairn_export_end\":";

/// What comes next.
pub(super) enum Step {
    /// A line, and which it is, from 1.
    Line { number: u64, text: String },
    /// No more.
    End(Ending),
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With the last line of an export, which says what there was.
    Whole,
    /// Otherwise, and how.
    Broken(&'static str),
}

/// A body, read line by line.
pub(super) struct Lines {
    body: Body,
    /// What has arrived and was not read.
    rest: Bytes,
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    digest: Sha256,
    counts: BTreeMap<String, u64>,
    number: u64,
}

impl Lines {
    pub fn of(body: Body) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            begun: Vec::new(),
            digest: Sha256::new(),
            counts: BTreeMap::new(),
            number: 0,
        }
    }

    /// The first line, which says that this is an export.
    pub async fn head(&mut self) -> Result<ExportHead, Failure> {
        let first = self.line().await?.unwrap_or_default();
        let head: Option<ExportHead> = serde_json::from_slice(&first).ok();
        let head = head.filter(|head| head.cairn_export == FORM);
        self.digest.update(&first);
        head.ok_or_else(|| {
            let detail = "the first line is not that of an export of this form";
            Problem::new(Code::MalformedBody, detail).into()
        })
    }

    /// Takes in what nobody will read.
    pub async fn discard(&mut self) {
        let all = async { while let Some(Ok(_)) = self.body.frame().await {} };
        // Whoever sends for longer than this loses the connection.
        drop(tokio::time::timeout(limits::BODY_TIME, all).await);
    }

    /// The next line.
    pub async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            let Some(line) = self.line().await? else {
                return Ok(Step::End(Ending::Broken("the file has no last line")));
            };
            if line.starts_with(END) {
                return self.end(&line).await.map(Step::End);
            }
            self.digest.update(&line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            let kind = kind_of(&text).unwrap_or_default();
            // Words of the file's own making are not kept without end.
            let has_room = self.counts.len() < KINDS || self.counts.contains_key(&kind);
            let kind = match has_room && kind.len() <= limits::WORD_BYTES {
                true => kind,
                false => String::new(),
            };
            *self.counts.entry(kind).or_default() += 1;
            return Ok(Step::Line {
                number: self.number,
                text,
            });
        }
    }

    async fn end(&mut self, line: &[u8]) -> Result<Ending, Failure> {
        let Ok(end) = serde_json::from_slice::<ExportEnd>(line) else {
            return Ok(Ending::Broken("the last line cannot be read"));
        };
        while let Some(more) = self.line().await? {
            if !more.iter().all(u8::is_ascii_whitespace) {
                return Ok(Ending::Broken("lines stand behind the last one"));
            }
        }
        let digest = hex(&std::mem::take(&mut self.digest).finalize());
        Ok(if end.sha256 != digest {
            Ending::Broken("the file differs from the digest in its last line")
        } else if end.counts != self.counts {
            Ending::Broken("the file has other lines than its last one says")
        } else {
            Ending::Whole
        })
    }

    /// The next line with its end; `None` after the last.
    async fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let mut line = std::mem::take(&mut self.begun);
                line.extend_from_slice(&self.rest.split_to(at + 1));
                return self.numbered(line).map(Some);
            }
            self.begun.extend_from_slice(&self.rest);
            self.rest = Bytes::new();
            if self.begun.len() > limits::IMPORT_LINE_BYTES {
                return Err(too_long(self.number + 1));
            }
            match self.arrive().await? {
                Some(bytes) => self.rest = bytes,
                None if self.begun.is_empty() => return Ok(None),
                None => {
                    let line = std::mem::take(&mut self.begun);
                    return self.numbered(line).map(Some);
                }
            }
        }
    }

    fn numbered(&mut self, line: Vec<u8>) -> Result<Vec<u8>, Failure> {
        self.number += 1;
        match line.len() > limits::IMPORT_LINE_BYTES {
            true => Err(too_long(self.number)),
            false => Ok(line),
        }
    }

    /// What arrives next. A body that breaks off ends what can be read of it.
    async fn arrive(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let frame = tokio::time::timeout(limits::BODY_TIME, self.body.frame()).await;
            let frame = match frame {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) | Err(_) => {
                    let detail = "the body broke off";
                    return Err(Problem::new(Code::MalformedBody, detail).into());
                }
            };
            if let Ok(bytes) = frame.into_data()
                && !bytes.is_empty()
            {
                return Ok(Some(bytes));
            }
        }
    }
}

fn kind_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        kind: String,
    }
    let named: Named = serde_json::from_str(text).ok()?;
    Some(named.kind)
}

fn too_long(number: u64) -> Failure {
    let detail = format!(
        "line {number}: at most {} bytes a line",
        limits::IMPORT_LINE_BYTES
    );
    Problem::new(Code::BodyTooLarge, detail).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const ONE: &str = "{\"kind\":\"prompt\"}\n";

    fn head() -> String {
        let head = json!({"cairn_export": 1, "tenant": "acme", "source": Uuid::nil(),
            "exported_at": "2026-10-10T08:45:00.000Z"});
        format!("{head}\n")
    }

    fn ended(text: &str, prompts: u64) -> String {
        let sha256 = hex(&Sha256::digest(text.as_bytes()));
        let end = json!({"cairn_export_end": 1, "counts": {"prompt": prompts}, "sha256": sha256});
        format!("{text}{end}\n")
    }

    async fn read(text: String) -> (u64, Ending) {
        let mut lines = Lines::of(Body::from(text));
        lines.head().await.expect("a head");
        let mut count = 0;
        loop {
            match lines.next().await.expect("a step") {
                Step::Line { .. } => count += 1,
                Step::End(ending) => return (count, ending),
            }
        }
    }

    #[tokio::test]
    async fn a_whole_file_is_known_by_its_last_line() {
        let text = format!("{}{ONE}\n{ONE}", head());
        assert_eq!(read(ended(&text, 2)).await, (2, Ending::Whole));
    }

    #[tokio::test]
    async fn what_is_cut_off_or_changed_is_not_whole() {
        let text = format!("{}{ONE}{ONE}", head());
        let whole = ended(&text, 2);
        let changed = whole.replacen("prompt", "Prompt", 1);
        let more = format!("{whole}{ONE}");
        for broken in [text.clone(), changed, more, ended(&text, 3)] {
            let (_, ending) = read(broken.clone()).await;
            assert!(matches!(ending, Ending::Broken(_)), "{broken}");
        }
        for cut in head().len()..whole.len() - 1 {
            let (_, ending) = read(whole[..cut].to_owned()).await;
            assert!(matches!(ending, Ending::Broken(_)), "{cut}");
        }
    }

    #[tokio::test]
    async fn what_is_no_export_is_refused_at_its_first_line() {
        for text in ["", "\n", "{}\n", ONE] {
            assert!(
                Lines::of(Body::from(text)).head().await.is_err(),
                "{text:?}"
            );
        }
    }
}
