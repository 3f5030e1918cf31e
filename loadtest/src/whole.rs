//! A record whole, as plain fields: what an agent would get from a memory that answers a query with
//! its best hits.

use std::fmt::Write as _;

use cairn_wire::observations::Record;

/// All that a record says, as a model would read it.
#[must_use]
pub fn render(record: &Record) -> String {
    let mut text = format!("### [{}]\nProject: {}\n", record.id, record.project_name);
    let at = record.at.format("%Y-%m-%d %H:%M UTC");
    let _ = writeln!(text, "By: {}, {at}", record.author);
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name}: {value}");
        }
    };
    field("Prompt", record.text.as_deref().unwrap_or_default());
    if let Some(fields) = &record.observation {
        field("Title", &fields.title);
        field("Subtitle", &fields.subtitle);
        field("Narrative", &fields.narrative);
        field("Facts", &fields.facts.join("; "));
        field("Files changed", &fields.files_modified.join(", "));
        field("Files read", &fields.files_read.join(", "));
    }
    if let Some(fields) = &record.summary {
        field("Request", &fields.request);
        field("Investigated", &fields.investigated);
        field("Learned", &fields.learned);
        field("Completed", &fields.completed);
        field("Next steps", &fields.next_steps);
        field("Notes", &fields.notes);
    }
    text
}
