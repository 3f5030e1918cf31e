//! The tables of claude-mem as far as they are imported: what their columns are called in each
//! version, and how their rows are read page by page.

use std::collections::HashMap;

use cairn_wire::export::ExportLine;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::lines::{self, Names};

/// A table as this database has it; without columns if it has none of this name.
pub(super) struct Table {
    name: String,
    columns: Vec<String>,
}

impl Table {
    /// Asks for the columns of a table.
    pub fn of(connection: &Connection, name: &str) -> rusqlite::Result<Self> {
        let mut ask = connection.prepare("select name from pragma_table_info(?1)")?;
        let columns = ask.query_map([name], |row| row.get(0))?;
        Ok(Self {
            name: name.to_owned(),
            columns: columns.collect::<rusqlite::Result<_>>()?,
        })
    }

    /// Whether it has a column.
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|own| own == column)
    }

    /// The first of some names that a column has.
    fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The column that holds the host's id of a session.
    pub fn session(&self) -> Option<&'static str> {
        self.first(&["content_session_id", "claude_session_id"])
    }

    /// The column that holds the id of the session that writes memory.
    fn memory_session(&self) -> Option<&'static str> {
        self.first(&["memory_session_id", "sdk_session_id"])
    }

    /// The columns that a line is made of, each under the first of its names, or null.
    fn select(&self, wanted: &[Wanted]) -> String {
        let columns = wanted.iter().map(|(as_name, names)| {
            let column = self.first(names);
            let column = column.map_or("null".to_owned(), |column| format!("t.{column}"));
            format!("{column} as {as_name}")
        });
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// What a column is read as, and what versions call it.
type Wanted = (&'static str, &'static [&'static str]);

/// A row, by the names that its columns are read as.
pub(super) struct Row(HashMap<String, Value>);

impl Row {
    /// Its id in its table.
    pub fn id(&self) -> i64 {
        self.number("id").unwrap_or_default()
    }

    /// A text, if there is one that says something.
    pub fn text(&self, column: &str) -> Option<String> {
        let text = match self.0.get(column)? {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Null => return None,
        };
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// A whole number.
    pub fn number(&self, column: &str) -> Option<i64> {
        match self.0.get(column)? {
            Value::Integer(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

/// A table that is imported.
pub(super) struct Source {
    pub table: &'static str,
    /// The statement that reads a page of it, if this database has what it needs.
    pub statement: fn(&Table, &Table) -> Option<String>,
    /// The line of a row; none for one that says nothing.
    pub line: fn(&Row, &Names, Uuid) -> Option<ExportLine>,
}

/// All that hold memory, in every published version up to 13; in the order of an export. Tool calls
/// stand in the queue of its worker alone, until they are worked off; work lists it has none.
pub(super) const SOURCES: [Source; 5] = [
    Source {
        table: "sdk_sessions",
        statement: sessions,
        line: lines::session,
    },
    Source {
        table: "pending_messages",
        statement: tool_uses,
        line: lines::tool_use,
    },
    Source {
        table: "observations",
        statement: observations,
        line: lines::observation,
    },
    Source {
        table: "session_summaries",
        statement: observations,
        line: lines::summary,
    },
    Source {
        table: "user_prompts",
        statement: tool_uses,
        line: lines::prompt,
    },
];

/// Columns of what is imported, whichever table has them.
const WANTED: [Wanted; 32] = [
    ("id", &["id"]),
    ("project", &["merged_into_project", "project"]),
    ("own_project", &["project"]),
    ("created", &["created_at_epoch", "started_at_epoch"]),
    ("ended", &["completed_at_epoch"]),
    ("host", &["platform_source"]),
    ("type", &["type"]),
    ("title", &["title"]),
    ("subtitle", &["subtitle"]),
    ("narrative", &["narrative"]),
    ("text", &["text"]),
    ("facts", &["facts"]),
    ("concepts", &["concepts"]),
    ("files_read", &["files_read"]),
    ("files_modified", &["files_modified", "files_edited"]),
    ("work_tokens", &["discovery_tokens"]),
    ("agent_id", &["agent_id"]),
    ("agent_type", &["agent_type"]),
    ("request", &["request"]),
    ("investigated", &["investigated"]),
    ("learned", &["learned"]),
    ("completed", &["completed"]),
    ("next_steps", &["next_steps"]),
    ("notes", &["notes"]),
    ("prompt", &["prompt_text"]),
    ("number", &["prompt_number"]),
    ("tool", &["tool_name"]),
    ("input", &["tool_input"]),
    ("output", &["tool_response"]),
    ("host_id", &["tool_use_id"]),
    (
        "content_session",
        &["content_session_id", "claude_session_id"],
    ),
    ("memory_session", &["memory_session_id", "sdk_session_id"]),
];

fn sessions(table: &Table, _: &Table) -> Option<String> {
    table.session()?;
    Some(format!(
        "select {} from {} t where t.id > ?1 order by t.id limit ?2",
        table.select(&WANTED),
        table.name
    ))
}

/// Rows that name the session that writes memory: the session's own id is looked up.
fn observations(table: &Table, sessions: &Table) -> Option<String> {
    let joined = table.memory_session().zip(sessions.memory_session());
    match joined {
        Some((own, theirs)) => page_with(table, sessions, &format!("s.{theirs} = t.{own}")),
        None => tool_uses(table, sessions),
    }
}

/// Rows that name the host's session, or the session's row.
fn tool_uses(table: &Table, sessions: &Table) -> Option<String> {
    let by_row = table
        .has("session_db_id")
        .then(|| "s.id = t.session_db_id".to_owned());
    let by_name = table.session().zip(sessions.session());
    // The same name may stand for sessions of several hosts: then the row says which.
    let by_name = by_name.map(|(own, theirs)| match &by_row {
        Some(by_row) => format!("({by_row} or t.session_db_id is null and s.{theirs} = t.{own})"),
        None => format!("s.{theirs} = t.{own}"),
    });
    page_with(table, sessions, &by_name.or(by_row)?)
}

fn page_with(table: &Table, sessions: &Table, on: &str) -> Option<String> {
    let host = sessions.has("platform_source");
    let host = if host { "s.platform_source" } else { "null" };
    Some(format!(
        "select {}, s.project as session_project, s.{} as session, {host} as session_host
         from {} t left join sdk_sessions s on s.id = (
           select s.id from sdk_sessions s where {on} order by s.id limit 1)
         where t.id > ?1 order by t.id limit ?2",
        table.select(&WANTED),
        sessions.session()?,
        table.name,
    ))
    .filter(|_| table.has("id"))
}

/// Rows after an id.
pub(super) fn page(
    connection: &Connection,
    statement: &str,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Row>> {
    let mut ask = connection.prepare(statement)?;
    let names: Vec<String> = ask.column_names().into_iter().map(str::to_owned).collect();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = ask.query_map(params![after, limit], |row| {
        let values = names.iter().enumerate();
        let values = values.map(|(nth, name)| Ok((name.clone(), row.get(nth)?)));
        values.collect::<rusqlite::Result<_>>().map(Row)
    })?;
    rows.collect()
}
