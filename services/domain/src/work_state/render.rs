//! The text of work state: rule block, lists and tasks, fitted to their room whole line by whole
//! line (contract 5.4).

use super::fold::as_text;
use super::{Item, List, WorkState};
use crate::plain::one_line;
use crate::room::{Room, Size};
use crate::template::Template;

/// How agents keep their lists: what a session reads first.
pub const RULES: &str = "\
# Work state: what is open in this project
Keep every to-do list and all multi-step work in Cairn with work_state_write instead of a built-in to-do tool. The whole team sees these lists on every machine; whatever is still open greets each new session here.
- One list per effort: work_state_write with list=\"<name>\" and fields
- A to-do: fields {\"task\": \"<name>\", \"status\": \"todo\" | \"doing\" | \"done\" | \"dropped\", ...details}
- A fact to keep: fields {\"<key>\": <value>} (last value wins; null clears it; \"status\": \"done\" closes the list)
- Before you start a task: action=\"claim\", so that nobody else takes it; action=\"release\" gives it back
- To see closed items too: work_state_read with includeClosed=true";

/// What stands below the rules when there is nothing.
pub const NOTHING_OPEN: &str = "Nothing open yet.";

/// Which lines are shown, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    /// Closed lists and tasks too.
    pub closed: bool,
    /// Each line ends in its last writer.
    pub authors: bool,
}

/// The block that greets a session, within its room.
#[must_use]
pub fn render_block(state: &WorkState, room: Room) -> Template {
    let lines = lines(&state.lists, Lines::default());
    let mut block = Template::text(RULES);
    block.push("\n\n");
    if lines.is_empty() && state.unread_open_lines == 0 {
        block.push(NOTHING_OPEN);
        return block;
    }
    block.push("Still open:");
    fit(block, lines, state.unread_open_lines, room)
}

/// What `work_state_read` answers: the lines of lists, within their room.
#[must_use]
pub fn render_read(project: &str, state: &WorkState, which: Lines, room: Room) -> Template {
    let lines = lines(&state.lists, which);
    let unread = if which.closed {
        state.unread_lines
    } else {
        state.unread_open_lines
    };
    if lines.is_empty() && unread == 0 {
        let nothing = if which.closed {
            "No work lists in"
        } else {
            "No open work in"
        };
        return Template::text(format!("{nothing} {}.", one_line(project)));
    }
    fit(Template::default(), lines, unread, room)
}

/// What the answer of a write shows below its first lines: the open lines of its list.
#[must_use]
pub fn render_written(head: &str, state: &WorkState, room: Room) -> Template {
    let lines = lines(&state.lists, Lines::default());
    let mut text = Template::text(head);
    text.push("\n\n");
    if lines.is_empty() && state.unread_open_lines == 0 {
        text.push("Nothing open in it.");
        return text;
    }
    text.push("Open in it:");
    fit(text, lines, state.unread_open_lines, room)
}

/// Adds whole lines while the text has room, and room for the line that counts the rest.
fn fit(mut text: Template, lines: Vec<Template>, unread: usize, room: Room) -> Template {
    let mut size = text.size();
    let mut left = lines.len() + unread;
    for line in lines {
        let more = size + break_size(size) + line.size();
        let rest = if left > 1 {
            Size::of("\n") + Size::of(&overflow(left - 1))
        } else {
            Size::default()
        };
        if !room.holds(more + rest) {
            break;
        }
        if size != Size::default() {
            text.push("\n");
        }
        text.append(line);
        size = more;
        left -= 1;
    }
    if left > 0 {
        if size != Size::default() {
            text.push("\n");
        }
        text.push(&overflow(left));
    }
    text
}

/// The line end before a line, which the first one needs none of.
fn break_size(before: Size) -> Size {
    if before == Size::default() {
        before
    } else {
        Size::of("\n")
    }
}

fn overflow(count: usize) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("- ...and {count} more line{s}; work_state_read shows them")
}

fn lines(lists: &[List], which: Lines) -> Vec<Template> {
    let mut lines = Vec::new();
    for list in lists {
        let tasks = list.tasks.iter();
        let tasks: Vec<&Item> = tasks
            .filter(|task| which.closed || !task.is_closed())
            .collect();
        let state = list.state.as_ref();
        let state = state.filter(|state| !state.is_blank() && (which.closed || !state.is_closed()));
        if state.is_none() && tasks.is_empty() {
            continue;
        }
        lines.push(list_line(list, state, which));
        lines.extend(tasks.into_iter().map(|task| task_line(task, which)));
    }
    lines
}

fn list_line(list: &List, state: Option<&Item>, which: Lines) -> Template {
    let mut line = Template::text(format!("- {}", one_line(&list.name)));
    if let Some(project) = &list.project {
        line.push(&format!(" [{}]", one_line(project)));
    }
    if let Some(state) = state {
        line.push(&format!(": {}, ", values(state, |_| true)));
        push_updated(state, which, &mut line);
    }
    line
}

fn task_line(task: &Item, which: Lines) -> Template {
    let mut line = Template::text("  - ");
    if let Some(status) = task.value("status") {
        line.push(&format!("[{}] ", one_line(&status)));
    }
    line.push(&one_line(task.task.as_deref().unwrap_or_default()));
    let others = values(task, |key| key != "status");
    if !others.is_empty() {
        line.push(&format!(" ({others})"));
    }
    if let Some(claim) = task.claim.as_ref().filter(|_| !task.is_closed()) {
        let holder = format!(", held by {}", one_line(&claim.holder));
        line.push_until(claim.until.timestamp_millis(), holder);
    }
    line.push(", ");
    push_updated(task, which, &mut line);
    line
}

fn push_updated(item: &Item, which: Lines, line: &mut Template) {
    line.push("updated ");
    line.push_ago(item.last.hlc.ms);
    line.push(" ago");
    if which.authors {
        line.push(&format!(" by {}", one_line(&item.author)));
    }
}

fn values(item: &Item, wanted: impl Fn(&str) -> bool) -> String {
    let shown = item.visible().filter(|(key, _)| wanted(key));
    let shown = shown.map(|(key, value)| {
        let value = as_text(value).unwrap_or_default();
        format!("{}={}", one_line(key), one_line(&value))
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
