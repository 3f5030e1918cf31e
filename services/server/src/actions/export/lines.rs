//! The way out of an export: lines in parts, counted and digested, which go no faster than their
//! reader takes them and wait for no reader for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use cairn_domain::hex::hex;
use cairn_store::StoreError;
use cairn_wire::export::{ExportEnd, FORM};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// A part of an export.
#[derive(Clone, Debug)]
pub enum Part {
    /// Lines.
    Lines(Bytes),
    /// The last line. An export whose parts end without it was cut off.
    End(Bytes),
}

/// Parts of an export, as they are written.
pub type Parts = mpsc::Receiver<Part>;

/// A line with the kind it counts as; the head counts as none.
pub(super) type Counted = (Option<&'static str>, Vec<u8>);

/// The way out.
pub(super) struct Lines {
    parts: mpsc::Sender<Part>,
    /// When all must have been taken.
    deadline: Instant,
    digest: Sha256,
    counts: BTreeMap<String, u64>,
}

impl Lines {
    /// A way out that is closed after a time, and where its parts come out.
    pub fn open(time: Duration) -> (Self, Parts) {
        let (parts, reading) = mpsc::channel(1);
        let lines = Self {
            parts,
            deadline: Instant::now() + time,
            digest: Sha256::new(),
            counts: BTreeMap::new(),
        };
        (lines, reading)
    }

    /// Waits until the reader has taken all that was sent, so that no more than one part waits in
    /// memory.
    ///
    /// # Errors
    /// `Timeout` if the time of the export is over, `Unavailable` if the reader has gone away.
    pub async fn taken(&self) -> Result<(), StoreError> {
        if Instant::now() >= self.deadline {
            return Err(StoreError::Timeout);
        }
        match timeout_at(self.deadline, self.parts.reserve()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(StoreError::Unavailable),
            Err(_) => Err(StoreError::Timeout),
        }
    }

    /// Sends lines.
    ///
    /// # Errors
    /// As [`Self::taken`].
    pub async fn send(&mut self, lines: Vec<Counted>) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(lines.iter().map(|(_, line)| line.len()).sum());
        for (kind, line) in lines {
            bytes.extend(line);
            if let Some(kind) = kind {
                *self.counts.entry(kind.to_owned()).or_default() += 1;
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.digest.update(&bytes);
        self.put(Part::Lines(bytes.into())).await
    }

    /// Sends the last line.
    ///
    /// # Errors
    /// As [`Self::taken`].
    pub async fn end(&mut self) -> Result<(), StoreError> {
        let end = ExportEnd {
            cairn_export_end: FORM,
            counts: std::mem::take(&mut self.counts),
            sha256: hex(&std::mem::take(&mut self.digest).finalize()),
        };
        self.put(Part::End(json_line(&end)?.into())).await
    }

    async fn put(&self, part: Part) -> Result<(), StoreError> {
        self.taken().await?;
        let sent = self.parts.send(part).await;
        // Who has gone away reads no more.
        sent.map_err(|_| StoreError::Unavailable)
    }
}

pub(super) fn json_line(line: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| StoreError::Bug(error.into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Vec<Counted> {
        vec![(Some("prompt"), b"{}\n".to_vec())]
    }

    #[tokio::test]
    async fn a_reader_who_takes_nothing_is_waited_for_as_long_as_an_export_may_take() {
        let (mut lines, mut reading) = Lines::open(Duration::from_millis(100));
        let late = loop {
            // There is room for one part.
            if let Err(late) = lines.send(line()).await {
                break late;
            }
        };
        assert!(matches!(late, StoreError::Timeout));
        // Nor does one get more who takes it only then.
        while reading.try_recv().is_ok() {}
        let late = lines.end().await.expect_err("over");
        assert!(matches!(late, StoreError::Timeout));
        drop(lines);
        assert!(reading.recv().await.is_none());
    }

    #[tokio::test]
    async fn parts_end_with_the_last_line() {
        let (mut lines, mut reading) = Lines::open(Duration::from_secs(3600));
        lines.send(line()).await.expect("sent");
        assert!(matches!(reading.recv().await, Some(Part::Lines(_))));
        lines.end().await.expect("sent");
        let Some(Part::End(end)) = reading.recv().await else {
            panic!("no end");
        };
        let end: ExportEnd = serde_json::from_slice(&end).expect("JSON");
        assert_eq!(end.counts["prompt"], 1);
        drop(reading);
        let gone = lines.send(line()).await.expect_err("nobody reads");
        assert!(matches!(gone, StoreError::Unavailable));
    }
}
