//! `cairn import`: an export, or a claude-mem database, sent in pieces. A piece that was stored
//! before stores nothing again, so an import that breaks off is ended by calling it again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use cairn_wire::Code;
use cairn_wire::domain::hex::hex;
use cairn_wire::domain::limits;
use cairn_wire::export::{ExportEnd, ExportHead, ExportLine, FORM};
use cairn_wire::import::{ImportAnswer, ImportQuery};
use chrono::Utc;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Client, say};
use crate::api::{self, Api, query_string};
use crate::claude_mem::{self, Database};
use crate::cli::Import;
use crate::exit::Failure;

/// Lines of a piece.
const LINES: usize = 1_000;
/// Bytes of a piece.
const BYTES: usize = 4 * 1024 * 1024;
/// How long the service may take for a piece.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often a piece is sent to a service that is away.
const ATTEMPTS: u32 = 6;
/// The pause after the first attempt; it doubles with each.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends a file to the service and says what became of it.
pub fn import(client: &Client, what: &Import) -> Result<(), Failure> {
    let api = client.api()?;
    let unreadable =
        |e: std::io::Error| Failure::Unreadable(format!("{}: {e}", what.file.display()));
    let is_database = claude_mem::is_database(&what.file).map_err(unreadable)?;
    let query = ImportQuery {
        project: what.project.clone(),
        author: (what.mine || is_database).then(|| "me".to_owned()),
        dry_run: what.dry_run.then_some(true),
    };
    let mut pieces = Pieces::new(&api, query);
    if is_database {
        let database = Database::open(&what.file, map(&what.map)?)?;
        pieces.begin(&ExportHead {
            cairn_export: FORM,
            tenant: "claude-mem".to_owned(),
            source: database.id,
            exported_at: Utc::now(),
        })?;
        database.read(|line| pieces.line(&line))?;
    } else if what.map.is_empty() {
        check(&what.file)?;
        send(&what.file, &mut pieces)?;
    } else {
        let why = "--map is for claude-mem databases";
        return Err(Failure::Usage(why.to_owned()));
    }
    pieces.send()?;
    let answer = pieces.finish();
    match what.json {
        true => say(&serde_json::json!(answer).to_string()),
        false => say(&words(&answer)),
    }
    Ok(())
}

/// Reads `old=key` pairs.
fn map(pairs: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |pair: &String| {
        let (old, key) = pair
            .split_once('=')
            .ok_or_else(|| Failure::Usage(format!("--map {pair:?}: want <old name>=<key>")))?;
        Ok((old.to_owned(), key.to_owned()))
    };
    pairs.iter().map(pair).collect()
}

/// Reads a whole export and compares it with its last line, before anything of it is sent.
fn check(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::Unreadable(format!("{}: {why}", path.display()));
    let mut digest = Sha256::new();
    let mut end = None;
    let mut is_first = true;
    each_line(path, |line| {
        if is_first {
            is_first = false;
            let head: Option<ExportHead> = serde_json::from_slice(line).ok();
            if head.is_none_or(|head| head.cairn_export != FORM) {
                return Err(refuse("no export and no claude-mem database"));
            }
        }
        if end.is_some() {
            return Err(refuse("lines stand behind the last one"));
        }
        match serde_json::from_slice::<ExportEnd>(line) {
            Ok(read) => end = Some(read),
            Err(_) => digest.update(line),
        }
        Ok(())
    })?;
    let digest = hex(&digest.finalize());
    match end {
        None => Err(refuse("the file is cut off: it has no last line")),
        Some(end) if end.sha256 != digest => Err(refuse("the file differs from its last line")),
        Some(_) => Ok(()),
    }
}

fn send(path: &Path, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
    let mut is_first = true;
    each_line(path, |line| {
        if is_first {
            is_first = false;
            let head = serde_json::from_slice(line);
            let head = head.map_err(|e| Failure::Unreadable(e.to_string()))?;
            return pieces.begin(&head);
        }
        let is_end = serde_json::from_slice::<ExportEnd>(line).is_ok();
        match is_end || line.iter().all(u8::is_ascii_whitespace) {
            true => Ok(()),
            false => pieces.put(line),
        }
    })
}

fn each_line(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unreadable = |e: std::io::Error| Failure::Unreadable(format!("{}: {e}", path.display()));
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = u64::try_from(limits::IMPORT_LINE_BYTES + 1).unwrap_or(u64::MAX);
        let mut bounded = std::io::Read::take(&mut file, limit);
        let read = bounded.read_until(b'\n', &mut line).map_err(unreadable)?;
        if read == 0 {
            return Ok(());
        }
        if read > limits::IMPORT_LINE_BYTES {
            let why = format!("a line is longer than {} bytes", limits::IMPORT_LINE_BYTES);
            return Err(Failure::Unreadable(why));
        }
        take(&line)?;
    }
}

/// Lines on their way, gathered to pieces, each an export of its own.
struct Pieces<'a> {
    api: &'a Api,
    path: String,
    head: Vec<u8>,
    body: Vec<u8>,
    counts: BTreeMap<String, u64>,
    lines: usize,
    sent: u64,
    answer: ImportAnswer,
}

impl<'a> Pieces<'a> {
    fn new(api: &'a Api, query: ImportQuery) -> Self {
        Self {
            api,
            path: format!("/v1/import?{}", query_string(&query)),
            head: Vec::new(),
            body: Vec::new(),
            counts: BTreeMap::new(),
            lines: 0,
            sent: 0,
            answer: ImportAnswer::default(),
        }
    }

    fn begin(&mut self, head: &ExportHead) -> Result<(), Failure> {
        self.head = json_line(head)?;
        Ok(())
    }

    fn line(&mut self, line: &ExportLine) -> Result<(), Failure> {
        self.put(&json_line(line)?)
    }

    fn put(&mut self, line: &[u8]) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Named {
            kind: String,
        }
        if self.lines >= LINES || self.body.len() + line.len() > BYTES {
            self.send()?;
        }
        let kind = serde_json::from_slice::<Named>(line).map(|named| named.kind);
        *self.counts.entry(kind.unwrap_or_default()).or_default() += 1;
        self.body.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.body.push(b'\n');
        }
        self.lines += 1;
        Ok(())
    }

    /// Sends what is gathered. A service that is away is waited for.
    fn send(&mut self) -> Result<(), Failure> {
        if self.lines == 0 {
            return Ok(());
        }
        let mut piece = self.head.clone();
        piece.append(&mut self.body);
        let end = ExportEnd {
            cairn_export_end: FORM,
            counts: std::mem::take(&mut self.counts),
            sha256: hex(&Sha256::digest(&piece)),
        };
        piece.extend(json_line(&end)?);
        let mut pause = PAUSE;
        let mut attempt = 1;
        let answer: ImportAnswer = loop {
            let request = self.api.post_lines(&self.path, piece.clone());
            match api::block_on(self.api.json(request.timeout(DEADLINE))) {
                Err(failure) if attempt < ATTEMPTS && is_passing(&failure) => {
                    tell(&format!("cairn: {failure}; waiting"));
                    std::thread::sleep(pause);
                    pause *= 2;
                    attempt += 1;
                }
                answer => break answer?,
            }
        };
        self.sent += u64::try_from(std::mem::take(&mut self.lines)).unwrap_or_default();
        if std::io::stderr().is_terminal() {
            tell(&format!("cairn: {} lines sent", self.sent));
        }
        self.add(answer);
        Ok(())
    }

    fn add(&mut self, more: ImportAnswer) {
        for (kind, more) in more.counts {
            let counts = self.answer.counts.entry(kind).or_default();
            counts.stored += more.stored;
            counts.duplicate += more.duplicate;
            counts.deleted += more.deleted;
            counts.refused += more.refused;
        }
        self.answer.ids.extend(more.ids);
        self.answer.ids_left_out += more.ids_left_out;
        self.answer.refused.extend(more.refused);
        self.answer.dry_run = more.dry_run;
    }

    fn finish(self) -> ImportAnswer {
        self.answer
    }
}

/// Whether the same piece may be taken a little later.
fn is_passing(failure: &Failure) -> bool {
    match failure {
        Failure::Unreachable(_) => true,
        Failure::Refused(problem) => problem.is(Code::RateLimited),
        _ => false,
    }
}

fn tell(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

fn json_line(line: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec(line).map_err(|e| Failure::Failed(e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What became of an import, in words.
fn words(answer: &ImportAnswer) -> String {
    let mut lines: Vec<String> = answer
        .counts
        .iter()
        .map(|(kind, counts)| {
            format!(
                "{kind}: {} stored, {} stored before, {} deleted since, {} refused",
                counts.stored, counts.duplicate, counts.deleted, counts.refused
            )
        })
        .collect();
    if lines.is_empty() {
        lines.push("nothing to import".to_owned());
    }
    let reasons: std::collections::BTreeSet<String> = answer
        .refused
        .iter()
        .map(|line| match &line.detail {
            Some(detail) => format!("refused: {} - {detail}", line.code),
            None => format!("refused: {}", line.code),
        })
        .collect();
    lines.extend(reasons);
    if !answer.ids.is_empty() {
        lines.push(format!(
            "{} have new ids; search finds them by the old ones too",
            answer.ids.len() as u64 + answer.ids_left_out
        ));
    }
    if answer.dry_run {
        lines.push("Nothing was stored: this was a dry run.".to_owned());
    }
    lines.join("\n")
}
