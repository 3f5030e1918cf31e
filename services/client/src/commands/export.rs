//! `cairn export`: what the service hands out, line by line to standard output, and whether that
//! was all.

use std::io::Write;
use std::time::Duration;

use cairn_wire::domain::hex::hex;
use cairn_wire::export::{ExportEnd, ExportQuery};
use sha2::{Digest, Sha256};

use super::Client;
use crate::api::{self, query_string};
use crate::cli::Export;
use crate::exit::Failure;

/// How long an export may take.
const DEADLINE: Duration = Duration::from_secs(6 * 60 * 60);

/// Prints the lines of an export.
pub fn export(client: &Client, what: &Export) -> Result<(), Failure> {
    let api = client.api()?;
    let query = ExportQuery {
        project: Some(what.project.clone().unwrap_or_else(|| "*".to_owned())),
        author: match what.mine {
            true => Some("me".to_owned()),
            false => what.author.clone(),
        },
        kinds: Some(what.kinds.join(",")).filter(|kinds| !kinds.is_empty()),
    };
    let request = api.get(&format!("/v1/export?{}", query_string(&query)));
    let request = request.timeout(DEADLINE);
    api::block_on(async move {
        let mut end = End::default();
        let mut out = std::io::stdout().lock();
        let mut answer = api::opened(request, "application/x-ndjson").await?;
        while let Some(bytes) = api::next_part(&mut answer).await? {
            end.take(&bytes);
            out.write_all(&bytes).map_err(gone)?;
        }
        out.flush().map_err(gone)?;
        end.check()
    })
}

fn gone(cause: std::io::Error) -> Failure {
    Failure::CannotWrite {
        what: "standard output".to_owned(),
        cause,
    }
}

/// The last line so far, and the digest of all before it.
#[derive(Default)]
struct End {
    digest: Sha256,
    line: Vec<u8>,
}

impl End {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.ends_with(b"\n") {
                self.digest.update(&self.line);
                self.line.clear();
            }
            self.line.extend_from_slice(part);
        }
    }

    fn check(self) -> Result<(), Failure> {
        let end: Option<ExportEnd> = serde_json::from_slice(&self.line).ok();
        let digest = hex(&self.digest.finalize());
        match end {
            Some(end) if end.sha256 == digest => Ok(()),
            _ => Err(Failure::Unreachable(
                "the export was cut off; what was printed is not all".to_owned(),
            )),
        }
    }
}
