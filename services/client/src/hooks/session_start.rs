//! Session start: what the model reads first. Work state, index, notices and wrapper together
//! stay within the host's limit, whatever the service sends.

use std::io::Write;
use std::time::{Duration, Instant};

use cairn_wire::context::ContextQuery;
use cairn_wire::domain::bounds::units;
use cairn_wire::domain::context::{Budget, Zone};
use cairn_wire::domain::limits;
use cairn_wire::domain::room::{Room, Size};
use cairn_wire::domain::work_state::render_block;
use chrono::Utc;

use super::Hook;
use crate::account::Account;
use crate::api::{self, Api};
use crate::copies::{Copies, IndexCopy};
use crate::exit::Failure;
use crate::spool::{Pace, Trouble};
use crate::tokens;
use crate::work_state::Offline;

/// When the last word of the service must be there, from the moment the host called: what is left
/// of the 3 s is for the start of the process and for writing.
const DEADLINE: Duration = Duration::from_millis(2_700);

/// When the spool is looked through no longer, from the same moment.
const OFFLINE_DEADLINE: Duration = Duration::from_millis(2_850);

/// The part of it that git may take to name a repository that has no name yet.
const GIT_PATIENCE: Duration = Duration::from_millis(800);

/// What a person who must sign in is told.
const SIGN_IN: &str = "Notice: not signed in to the memory service; run: cairn login";

/// Prints the context, or a notice where there is none; without the service the last copy.
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
    let limit = hook.host.limit(hook.settings.context_limit);
    let is_told = !matches!(source, Some("resume" | "fork"));
    let mut told = Told::default();
    if let (true, Some(account)) = (is_told, account) {
        match fetch(hook, service, account, reserve(&notices, limit), limit) {
            Ok(answer) => told = answer,
            // A project that nobody has written to yet.
            Err(Failure::Refused(problem)) if problem.status == 404 => {}
            Err(failure) => {
                let notice = failure_notice(&failure).to_owned();
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
                let is_away = matches!(failure, Failure::Unreachable(_) | Failure::Fault(_));
                if is_away {
                    told.text = offline(hook, service, account, &notices, limit);
                }
            }
        }
    }
    // A host that is gone needs no answer.
    let answer = hook
        .host
        .render_context(render(&told.text, &notices, limit).as_deref());
    if let Some(answer) = answer {
        drop(writeln!(std::io::stdout(), "{answer}"));
    }
    if let (Some(account), Some(index)) = (account, &told.index) {
        let copies = Copies::of(&hook.dirs, service, account, &told.project);
        // What somebody said last is shown once, and not kept.
        if hook.settings.context.show_last_reply != Some(true) {
            copies.keep_index(index);
        }
        copies.note_seen(told.hlc.as_deref());
    }
}

/// What the service told, and what is kept of it.
#[derive(Default)]
struct Told {
    text: String,
    project: String,
    index: Option<IndexCopy>,
    hlc: Option<String>,
}

/// The last copy of the index, marked with its time, behind the lists with what waits for the
/// service merged into them; nothing if there is neither.
fn offline(
    hook: &Hook,
    service: &str,
    account: &Account,
    notices: &[String],
    limit: Room,
) -> String {
    let Some(project) = hook.project.clone().named(&hook.dirs, Duration::ZERO) else {
        return String::new();
    };
    let key = &project.name.key;
    let index = Copies::of(&hook.dirs, service, account, key).index();
    let end = hook.begun + OFFLINE_DEADLINE;
    let lists = Offline::read(&hook.dirs, &hook.spool(), (service, account), key, end);
    if index.is_none() && lists.at.is_none() && lists.waiting == 0 {
        return String::new();
    }
    let budget = Budget {
        limit,
        reserve: reserve(notices, limit),
    };
    let mark = |at| format!("Offline copy of {}:\n", cairn_wire::time::text(at));
    let head = lists.at.map(mark).unwrap_or_default();
    let room = budget.work_state().less(Size::of(&head));
    let block = render_block(&lists.work, room).fill(Utc::now(), Zone::UTC);
    let index = index.map(|index| format!("{BETWEEN}{}{}", mark(index.at), index.text));
    head + &block + &index.unwrap_or_default()
}

fn spool_notice(hook: &Hook) -> Option<String> {
    let aside = hook.spool().aside().count().unwrap_or(0);
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

fn fetch(
    hook: &Hook,
    service: &str,
    account: &Account,
    reserve: usize,
    limit: Room,
) -> Result<Told, Failure> {
    let end = hook.begun + DEADLINE;
    let patience = GIT_PATIENCE.min(end.saturating_duration_since(Instant::now()));
    let project = hook.project.clone().named(&hook.dirs, patience);
    let project = project.ok_or(Failure::Slow(GIT_PATIENCE))?.name.key;
    let left = end.saturating_duration_since(Instant::now());
    let query = ContextQuery {
        budget: Some(limit.units),
        tokens: (limit.tokens < usize::MAX).then_some(limit.tokens),
        reserve: Some(reserve),
        ..hook.settings.context.clone()
    };
    let ask = async {
        let account = tokens::renewed(&hook.dirs, service, account.clone()).await?;
        let api = Api::new(service, Some(&account), left)?.within(&project);
        let api = api.in_session(&hook.report.session_name());
        api.context(&query).await
    };
    let answer = api::block_on(async {
        // Of any kind: the time to read the answer counts as well.
        let context = tokio::time::timeout(left, ask).await;
        context.map_err(|_| Failure::Unreachable("no answer in time".to_owned()))?
    })?;
    let index = answer.parts.into_iter().find(|part| part.name == "index");
    Ok(Told {
        text: answer.text,
        project,
        index: index.map(|part| IndexCopy {
            at: Utc::now(),
            text: part.text,
        }),
        hlc: answer.hlc,
    })
}

/// Units that the client adds to what the service sends: the wrapper, and notices with the lines
/// that set them off.
fn reserve(notices: &[String], limit: Room) -> usize {
    let told = fitting(notices, limit);
    units(&wrap("", &told)) + if told.is_empty() { 0 } else { BETWEEN.len() }
}

/// The notices that have room: work state keeps its part of what all but the index share.
fn fitting(notices: &[String], limit: Room) -> String {
    let share = limit.units * limits::CONTEXT_SHARE / 100;
    let frame = units(&wrap("", "")) + 2 * BETWEEN.len();
    let room = share.saturating_sub(limits::LEAST_WORK_UNITS + frame);
    let room = room.min(limits::NOTICE_UNITS);
    let mut told = String::new();
    for notice in notices {
        if units(&told) + units(notice) < room {
            told.push_str(if told.is_empty() { "" } else { "\n" });
            told.push_str(notice);
        }
    }
    told
}

/// The whole text within the limit; `None` if there is nothing to say.
fn render(index: &str, notices: &[String], limit: Room) -> Option<String> {
    let told = fitting(notices, limit);
    let frame = Size::of(&wrap("", &told)) + Size::of(BETWEEN);
    let index = fit(index.trim(), limit.less(frame));
    let text = wrap(&index, &told);
    (!index.is_empty() || !told.is_empty()).then_some(text)
}

/// What stands between two parts.
const BETWEEN: &str = "\n\n";

fn wrap(index: &str, told: &str) -> String {
    let between = if index.is_empty() || told.is_empty() {
        ""
    } else {
        BETWEEN
    };
    format!("<cairn-context>\n{index}{between}{told}\n</cairn-context>")
}

/// The index within its room. The service keeps to the limit itself; if it did not, or the text is
/// a copy that was made for more, its oldest rows go, whole, and all of it if it is still too long
/// without any.
fn fit(index: &str, room: Room) -> String {
    let mut size = Size::of(index);
    let mut kept = Vec::new();
    for line in index.lines() {
        if !room.holds(size) && is_row(line) {
            size = size - Size::of(line) - Size::of("\n");
        } else {
            kept.push(line);
        }
    }
    if !room.holds(size) {
        return String::new();
    }
    kept.join("\n")
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

    const ROOM: Room = Room::units(10_000);

    #[test]
    fn c001_no_more_than_the_limit_leaves_and_no_row_is_cut() {
        let row = |n: usize| format!("{n} 3:45p ● {}", "t".repeat(300));
        let rows: Vec<String> = (1..=50).map(row).collect();
        let index = format!(
            "# [my-app] recent context\n\n{}\n\nAccess 7k",
            rows.join("\n")
        );
        let text = render(&index, &["Notice: x; run: cairn status".to_owned()], ROOM);
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
    fn a_host_that_counts_tokens_gets_no_more_of_a_copy() {
        let rows: Vec<String> = (1..=200).map(|n| format!("{n} 3:45p ● 修正")).collect();
        let room = Room {
            units: 9_600,
            tokens: 400,
        };
        let text = render(&rows.join("\n"), &[], room).expect("a text");
        assert!(
            room.holds(Size::of(&text)) && text.contains("\n200 3:45p"),
            "{text}"
        );
        assert!(text.lines().count() > 20);
    }

    #[test]
    fn nothing_to_say_is_nothing() {
        assert_eq!(render("", &[], ROOM), None);
        let only = render("", &["Notice: n".to_owned()], ROOM);
        assert_eq!(
            only.as_deref(),
            Some("<cairn-context>\nNotice: n\n</cairn-context>")
        );
    }
}
