//! Session start: what the model reads first. Index, notices and wrapper together stay within
//! the host's limit, whatever the service sends.

use std::io::Write;
use std::time::{Duration, Instant};

use cairn_wire::domain::bounds::units;

use super::Hook;
use crate::account::Account;
use crate::api::{self, Api};
use crate::exit::Failure;
use crate::hosts::claude_code;
use crate::spool::{Pace, Spool, Trouble};

/// Time for the service; with the start of a process and the spool, 3 s in all.
const DEADLINE: Duration = Duration::from_millis(2_600);

/// The part of it that git may take to name a repository that has no name yet.
const GIT_PATIENCE: Duration = Duration::from_millis(800);

/// What a person who must sign in is told.
const SIGN_IN: &str = "Notice: not signed in to the memory service; run: cairn login --key";

/// Units that notices may take.
const NOTICE_UNITS: usize = 400;

/// Prints the context, or a notice where there is none.
pub fn answer(
    hook: &Hook,
    service: &str,
    account: Option<&Account>,
    source: Option<&str>,
    pace: &Pace,
) {
    let mut notices = Vec::new();
    if account.is_none() || pace.trouble == Some(Trouble::SignIn) {
        notices.push(SIGN_IN.to_owned());
    }
    notices.extend(spool_notice(hook));
    let resumes = matches!(source, Some("resume" | "fork"));
    let mut index = String::new();
    if !resumes && account.is_some() {
        match fetch(hook, service, account) {
            Ok(text) => index = text,
            // A project that nobody has written to yet.
            Err(Failure::Refused(problem)) if problem.status == 404 => {}
            Err(failure) => {
                let notice = failure_notice(&failure).to_owned();
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
    }
    if let Some(text) = render(&index, &notices, hook.settings.context_limit) {
        // A host that is gone needs no answer.
        drop(writeln!(
            std::io::stdout(),
            "{}",
            claude_code::render_context(&text)
        ));
    }
}

fn spool_notice(hook: &Hook) -> Option<String> {
    let spool = Spool::of(&hook.dirs, &hook.settings);
    let aside = spool.aside().count().unwrap_or(0);
    let word = if aside == 1 {
        "event was"
    } else {
        "events were"
    };
    (aside > 0).then(|| format!("Notice: {aside} {word} not stored; run: cairn spool list"))
}

const fn failure_notice(failure: &Failure) -> &'static str {
    match failure {
        Failure::NotSignedIn(_) => SIGN_IN,
        Failure::Unreachable(_) => {
            "Notice: the memory service cannot be reached; run: cairn status"
        }
        Failure::Fault(_) => "Notice: the memory service has a fault; run: cairn status",
        Failure::Slow(_) => "Notice: git is slow to name this repository; run: cairn context",
        _ => "Notice: the memory service refused the session's context; run: cairn context",
    }
}

fn fetch(hook: &Hook, service: &str, account: Option<&Account>) -> Result<String, Failure> {
    let end = Instant::now() + DEADLINE;
    let project = hook.project.clone().named(&hook.dirs, GIT_PATIENCE);
    let project = project.ok_or(Failure::Slow(GIT_PATIENCE))?;
    let left = end.saturating_duration_since(Instant::now());
    let api = Api::new(service, account, left)?.within(&project.name.key);
    api::block_on(api.context())
}

/// The whole text within `limit` units; `None` if there is nothing to say.
fn render(index: &str, notices: &[String], limit: usize) -> Option<String> {
    let mut told = String::new();
    for notice in notices {
        if units(&told) + units(notice) < NOTICE_UNITS {
            told.push_str(if told.is_empty() { "" } else { "\n" });
            told.push_str(notice);
        }
    }
    let mut rows: Vec<&str> = index.trim().lines().collect();
    loop {
        let index = rows.join("\n");
        let parts = [index.as_str(), told.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            return None;
        }
        let text = format!("<cairn-context>\n{}\n</cairn-context>", parts.join("\n\n"));
        if units(&text) <= limit {
            return Some(text);
        }
        // The service keeps to the limit itself; if it did not, its oldest rows go, whole.
        match rows.iter().position(|row| is_row(row)) {
            Some(oldest) => drop(rows.remove(oldest)),
            None => rows.clear(),
        }
    }
}

/// `41 3:45p …` or `S7 …`: an entry of the index.
fn is_row(line: &str) -> bool {
    let id = line.split(' ').next().unwrap_or_default();
    let digits = id.strip_prefix('S').unwrap_or(id);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c001_no_more_than_the_limit_leaves_and_no_row_is_cut() {
        let row = |n: usize| format!("{n} 3:45p ● {}", "t".repeat(300));
        let rows: Vec<String> = (1..=50).map(row).collect();
        let index = format!(
            "# [my-app] recent context\n\n{}\n\nAccess 7k",
            rows.join("\n")
        );
        let text = render(&index, &["Notice: x; run: cairn status".to_owned()], 10_000);
        let text = text.expect("a text");
        assert!(units(&text) <= 10_000);
        assert!(text.contains("# [my-app]") && text.contains("\n50 3:45p") && text.contains("7k"));
        assert!(
            text.lines()
                .filter(|line| is_row(line))
                .all(|line| line.ends_with("ttt"))
        );
    }

    #[test]
    fn nothing_to_say_is_nothing() {
        assert_eq!(render("", &[], 10_000), None);
        let only = render("", &["Notice: n".to_owned()], 10_000);
        assert_eq!(
            only.as_deref(),
            Some("<cairn-context>\nNotice: n\n</cairn-context>")
        );
    }
}
