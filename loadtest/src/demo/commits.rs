//! Commits of a git repository as observations.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use cairn_wire::domain::limits;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::process::output_of;

/// The newest commits that are replayed.
const COMMITS: &str = "400";
/// Tokens that a changed line is taken to have cost: what an average line of code holds.
const TOKENS_A_LINE: u64 = 12;
/// Before each commit, and between its fields; in no message that git would print.
const COMMIT: char = '\u{1e}';
const FIELD: char = '\u{1f}';

/// One commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    id: String,
    at: String,
    /// The first line of its message.
    pub subject: String,
    body: String,
    changes: Vec<Change>,
}

/// What became of one file.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    file: String,
    added: u64,
    deleted: u64,
}

impl Change {
    const fn lines(&self) -> u64 {
        self.added.saturating_add(self.deleted)
    }
}

/// Whether `folder` lies in a git repository.
#[must_use]
pub fn is_repository(folder: &Path) -> bool {
    output_of(git(folder).args(["rev-parse", "--git-dir"])).is_ok()
}

/// The newest commits of the repository, the oldest of them first.
///
/// # Errors
/// If git cannot list them, or there is none.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Commit>> {
    let format = format!("--format={COMMIT}%H{FIELD}%aI{FIELD}%s{FIELD}%b{FIELD}");
    let mut git = git(folder);
    git.args(["log", "-n", COMMITS, "--numstat", "--no-renames", &format]);
    let log = output_of(&mut git).context("listing the commits")?;
    let mut commits = parse(&log)?;
    if commits.is_empty() {
        bail!("{} has no commits", folder.display());
    }
    commits.reverse();
    Ok(commits)
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    // The repository may be somebody else's: it is only read.
    git.args([
        "-c",
        "safe.directory=*",
        "-c",
        "core.quotePath=false",
        "-c",
        "log.showSignature=false",
    ]);
    git.arg("-C").arg(folder);
    git
}

fn parse(log: &str) -> anyhow::Result<Vec<Commit>> {
    log.split(COMMIT).skip(1).map(parse_commit).collect()
}

fn parse_commit(text: &str) -> anyhow::Result<Commit> {
    let fields: Vec<&str> = text.splitn(5, FIELD).collect();
    let [id, at, subject, body, changes] = fields[..] else {
        bail!("git printed a commit of {} fields", fields.len());
    };
    Ok(Commit {
        id: id.to_owned(),
        at: at.to_owned(),
        subject: subject.to_owned(),
        body: body.trim().to_owned(),
        changes: changes.lines().filter_map(parse_change).collect(),
    })
}

/// `3<tab>1<tab>src/main.rs`; `-` for both numbers of a binary file.
fn parse_change(line: &str) -> Option<Change> {
    let mut parts = line.splitn(3, '\t');
    let (added, deleted, file) = (parts.next()?, parts.next()?, parts.next()?);
    let lines = |number: &str| number.parse::<u64>().unwrap_or(0);
    Some(Change {
        file: file.to_owned(),
        added: lines(added),
        deleted: lines(deleted),
    })
}

impl Commit {
    /// The commit as an item for the spool. Its event id comes from the commit's own, so that a
    /// second replay stores nothing.
    #[must_use]
    pub fn item(&self) -> Value {
        let files: Vec<&str> = self
            .changes
            .iter()
            .map(|change| change.file.as_str())
            .collect();
        let facts = self.changes.iter().take(limits::FACTS);
        let facts: Vec<String> = facts
            .map(|c| format!("{} +{} -{}", c.file, c.added, c.deleted))
            .collect();
        let lines: u64 = self.changes.iter().map(Change::lines).sum();
        let tokens = lines.saturating_mul(TOKENS_A_LINE);
        let body = json!({
            "type": self.kind(),
            "title": self.subject,
            "narrative": self.body,
            "facts": facts,
            "concepts": ["what-changed"],
            "files_modified": files,
            "work_tokens": u32::try_from(tokens).unwrap_or(u32::MAX),
        });
        let mut item = json!({"kind": "observation", "at": self.at, "body": body});
        if let Some(id) = self.event_id() {
            item["event_id"] = json!(id);
        }
        item
    }

    fn event_id(&self) -> Option<Uuid> {
        let number = u128::from_str_radix(self.id.get(..32)?, 16).ok()?;
        Some(Uuid::new_v8(number.to_be_bytes()))
    }

    /// The type by the first word of the subject.
    fn kind(&self) -> &'static str {
        let word = self
            .subject
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        match word.to_lowercase().as_str() {
            "fix" | "fixes" | "fixed" | "bugfix" | "hotfix" | "repair" | "mend" => "bugfix",
            "add" | "adds" | "added" | "feat" | "feature" | "implement" | "introduce" => "feature",
            "refactor" | "rename" | "move" | "simplify" | "split" | "extract" => "refactor",
            _ => "change",
        }
    }
}

/// Words that say nothing about a commit.
const STOP: &[&str] = &[
    "after", "also", "before", "both", "each", "from", "have", "instead", "into", "make", "more",
    "must", "only", "other", "over", "same", "since", "some", "such", "than", "that", "their",
    "them", "then", "they", "this", "under", "what", "when", "where", "which", "with", "without",
];
/// Words of a query.
const QUERY_WORDS: usize = 3;

/// A query out of the commits: the words of one subject that the most other subjects share.
#[must_use]
pub fn query(commits: &[Commit]) -> String {
    let mut shared: HashMap<String, usize> = HashMap::new();
    for commit in commits {
        for word in commit.words() {
            *shared.entry(word).or_default() += 1;
        }
    }
    let best = |commit: &Commit| {
        let mut words: Vec<(usize, String)> = commit
            .words()
            .into_iter()
            .map(|word| (shared[&word], word))
            .collect();
        words.sort_by_key(|(count, _)| Reverse(*count));
        words.truncate(QUERY_WORDS);
        words
    };
    let total = |words: &[(usize, String)]| words.iter().map(|(count, _)| count).sum::<usize>();
    // The first of the best, so that the same commits always give the same query.
    let picked = commits
        .iter()
        .map(best)
        .rev()
        .max_by_key(|words| total(words));
    let words: Vec<String> = picked
        .unwrap_or_default()
        .into_iter()
        .map(|(_, word)| word)
        .collect();
    match commits.first() {
        Some(commit) if words.is_empty() => commit.subject.clone(),
        _ => words.join(" "),
    }
}

impl Commit {
    /// The words of the subject that say something, each once.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for word in self.subject.split(|c: char| !c.is_alphanumeric()) {
            let word = word.to_lowercase();
            let says = word.chars().count() >= 4 && !STOP.contains(&word.as_str());
            if says && !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\u{1e}0123456789abcdef0123456789abcdef01234567\u{1f}2026-10-10T08:45:00+02:00\
        \u{1f}Fix the pool: return connections\u{1f}They were lost\n\non errors.\n\u{1f}\n\n\
        3\t1\tsrc/db/pool.ts\n-\t-\tlogo with blank.png\n\
        \u{1e}89ab\u{1f}2026-10-09T00:00:00Z\u{1f}x\u{1f}\u{1f}\n";

    #[test]
    fn a_log_is_read_with_bodies_files_and_sizes() {
        let commits = parse(LOG).expect("parses");
        assert_eq!(commits[0].body, "They were lost\n\non errors.");
        let change = |file: &str, added, deleted| Change {
            file: file.to_owned(),
            added,
            deleted,
        };
        let changes = [
            change("src/db/pool.ts", 3, 1),
            change("logo with blank.png", 0, 0),
        ];
        assert_eq!(commits[0].changes, changes);
        assert_eq!(commits[1].changes, []);
    }

    #[test]
    fn a_commit_is_an_observation_with_an_event_id_of_its_own() {
        let commits = parse(LOG).expect("parses");
        let item = commits[0].item();
        assert_eq!(item["event_id"], "01234567-89ab-8def-8123-456789abcdef");
        assert_eq!(item["body"]["type"], "bugfix");
        assert_eq!(item["body"]["work_tokens"], 48);
        let body = serde_json::from_value(item["body"].clone()).expect("fields");
        let fields: cairn_wire::observations::ObservationFields = body;
        assert!(
            fields
                .parse(cairn_wire::domain::bounds::Oversize::Refuse)
                .is_ok()
        );
    }

    #[test]
    fn a_query_is_the_words_that_subjects_share() {
        let subjects = [
            "Fix the pool",
            "Render it",
            "Drain the pool at the end",
            "Widen the pool",
        ];
        let log: String = subjects
            .iter()
            .map(|s| format!("\u{1e}a\u{1f}b\u{1f}{s}\u{1f}\u{1f}"))
            .collect();
        let commits = parse(&log).expect("parses");
        assert_eq!(query(&commits), "pool drain");
        assert_eq!(query(&commits[1..2]), "render");
        assert_eq!(
            query(&parse("\u{1e}a\u{1f}b\u{1f}x\u{1f}\u{1f}").expect("parses")),
            "x"
        );
        assert_eq!(query(&[]), "");
    }

    #[test]
    fn this_crate_reads_a_repository_of_one_commit() {
        let folder = tempfile::tempdir().expect("made");
        let run = |words: &[&str]| output_of(git(folder.path()).args(words)).expect("git");
        run(&["init", "-q"]);
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").expect("written");
        run(&["add", "."]);
        let who = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "commit.gpgsign=false",
        ];
        run(&[&who[..], &["commit", "-qm", "Begin"]].concat());
        let commits = read(folder.path()).expect("reads");
        assert_eq!(commits.len(), 1);
        assert_eq!(
            (
                commits[0].changes[0].file.as_str(),
                commits[0].changes[0].added
            ),
            ("a.txt", 2)
        );
    }
}
