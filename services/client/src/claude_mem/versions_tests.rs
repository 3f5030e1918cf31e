//! Databases as four versions of claude-mem made them, and what is read of each.

use std::path::Path;

use cairn_wire::domain::bounds::{Oversize, units};
use cairn_wire::export::ExportLine;
use rstest::rstest;
use rusqlite::Connection;
use serde_json::json;

use super::*;

/// The versions, by how their tables look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// One text an observation, no prompts.
    Oldest,
    /// Fields, and the first names of sessions.
    Five,
    /// Other names of sessions, costs, a queue of tool calls.
    Nine,
    /// Hosts, subagents, merged projects.
    Thirteen,
}

use Version::{Five, Nine, Oldest, Thirteen};

impl Version {
    const fn sessions(self) -> (&'static str, &'static str) {
        match self {
            Oldest | Five => ("claude_session_id", "sdk_session_id"),
            Nine | Thirteen => ("content_session_id", "memory_session_id"),
        }
    }

    fn schema(self) -> String {
        let (host, memory) = self.sessions();
        let platform = match self {
            Thirteen => "platform_source text not null default 'claude', custom_title text,",
            _ => "",
        };
        let costs = match self {
            Nine | Thirteen => "discovery_tokens integer default 0,",
            Oldest | Five => "",
        };
        let newest = match self {
            Thirteen => {
                "content_hash text, generated_by_model text, relevance_count integer default 0,
                 merged_into_project text, agent_type text, agent_id text, metadata text,"
            }
            _ => "",
        };
        let fields = match self {
            Oldest => "text text not null,",
            _ => {
                "text text, title text, subtitle text, facts text, narrative text, concepts text,
                 files_read text, files_modified text, prompt_number integer,"
            }
        };
        let mut schema = format!(
            "pragma journal_mode = wal;
             create table schema_versions (id integer primary key, version integer unique not null,
               applied_at text not null);
             insert into schema_versions (version, applied_at)
               values (4, '2025-10-01T08:00:00.123Z'), (5, '2025-10-02T08:00:00.000Z');
             create table sdk_sessions (id integer primary key autoincrement, {host} text not null,
               {memory} text unique, project text not null, {platform} user_prompt text,
               started_at text not null, started_at_epoch integer not null, completed_at text,
               completed_at_epoch integer, status text not null default 'active');
             create table observations (id integer primary key autoincrement,
               {memory} text not null, project text not null, {fields} type text not null,
               {costs} {newest} created_at text not null, created_at_epoch integer not null);
             create table session_summaries (id integer primary key autoincrement,
               {memory} text not null, project text not null, request text, investigated text,
               learned text, completed text, next_steps text, files_read text, files_edited text,
               notes text, {costs} created_at text not null, created_at_epoch integer not null);"
        );
        if self != Oldest {
            let by_row = match self {
                Thirteen => "session_db_id integer,",
                _ => "",
            };
            schema.push_str(&format!(
                "create table user_prompts (id integer primary key autoincrement, {by_row}
                   {host} text not null, prompt_number integer not null,
                   prompt_text text not null, created_at text not null,
                   created_at_epoch integer not null);"
            ));
        }
        if matches!(self, Nine | Thirteen) {
            let own_id = match self {
                Thirteen => "tool_use_id text,",
                _ => "",
            };
            schema.push_str(&format!(
                "create table pending_messages (id integer primary key autoincrement,
                   session_db_id integer not null, {host} text not null,
                   message_type text not null, tool_name text, tool_input text,
                   tool_response text, {own_id} cwd text, prompt_number integer,
                   status text not null default 'pending', created_at_epoch integer not null);"
            ));
        }
        schema
    }
}

const AT: i64 = 1_760_000_000_000;

/// A database with two observations, one of them private in part, and one of everything else.
fn make(path: &Path, version: Version) {
    let connection = Connection::open(path).expect("a database");
    let run = |sql: &str| connection.execute_batch(sql).expect(sql);
    run(&version.schema());
    let (host, memory) = version.sessions();
    run(&format!(
        "insert into sdk_sessions ({host}, {memory}, project, started_at, started_at_epoch)
         values ('s-1', 'm-1', 'my-app', 'x', {AT})"
    ));
    match version {
        Oldest => run(&format!(
            "insert into observations ({memory}, project, text, type, created_at, created_at_epoch)
             values ('m-1', 'my-app', 'the pool leaked', 'bugfix', 'x', {AT})"
        )),
        _ => {
            let (costs, cost) = match version {
                Nine | Thirteen => (", discovery_tokens", ", 1800"),
                _ => ("", ""),
            };
            let concepts = r#"["gotcha","made-up"]"#;
            run(&format!(
                "insert into observations ({memory}, project, type, title, subtitle, facts,
                   narrative, concepts, files_read, files_modified, created_at,
                   created_at_epoch{costs})
                 values ('m-1', 'my-app', 'bugfix', '修复连接池泄漏', 'sub', '[\"20 at most\",\"a \\\"b\\\"\"]',
                   'it leaked', '{concepts}', '[\"src/a.rs\"]', '[\"src/b.rs\"]', 'x',
                   {AT}{cost}),
                 ('m-1', 'my-app', 'how-odd', 'open <private>shut</private>', null, '[]', null,
                   null, null, 'not json', 'x', {AT}{cost})"
            ));
        }
    }
    run(&format!(
        "insert into session_summaries ({memory}, project, request, learned, created_at,
           created_at_epoch)
         values ('m-1', 'my-app', 'mend it', 'a lot', 'x', {AT}),
           ('m-1', 'my-app', '', '<private>all of it</private>', 'x', {AT})"
    ));
    if version != Oldest {
        run(&format!(
            "insert into user_prompts ({host}, prompt_number, prompt_text, created_at,
               created_at_epoch)
             values ('s-1', 1, 'why does it leak?', 'x', {AT}),
               ('s-1', 2, '<private>key</private>', 'x', {AT})"
        ));
    }
    if matches!(version, Nine | Thirteen) {
        run(&format!(
            "insert into pending_messages (session_db_id, {host}, message_type, tool_name,
               tool_input, tool_response, prompt_number, created_at_epoch)
             values (1, 's-1', 'observation', 'Bash', '{{\"command\":\"make\"}}', '\"ok\"', 1, {AT}),
               (1, 's-1', 'observation', 'Bash', null, null, 1, {AT}),
               (1, 's-1', 'summarize', null, null, null, 1, {AT})"
        ));
    }
    if version == Thirteen {
        run(
            "update observations set agent_type = 'explorer', agent_id = 'a-1',
               merged_into_project = 'whole' where id = 1;
             update user_prompts set session_db_id = 1;
             update sdk_sessions set platform_source = 'codex'",
        );
    }
}

fn read(path: &Path, map: &[(&str, &str)]) -> (Uuid, Vec<ExportLine>) {
    let map = map
        .iter()
        .map(|(old, key)| ((*old).to_owned(), (*key).to_owned()));
    let database = Database::open(path, map.collect()).expect("a database");
    let mut lines = Vec::new();
    let read = database.read(|line| {
        lines.push(line);
        Ok(())
    });
    read.expect("read");
    (database.id, lines)
}

fn of<'a>(lines: &'a [ExportLine], kind: &str) -> Vec<&'a ExportLine> {
    lines.iter().filter(|line| line.kind == kind).collect()
}

#[rstest]
#[case(Oldest)]
#[case(Five)]
#[case(Nine)]
#[case(Thirteen)]
fn every_version_is_read_and_reads_the_same_again(#[case] version: Version) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("claude-mem.db");
    make(&path, version);
    assert!(is_database(&path).expect("read"));
    let (id, lines) = read(&path, &[]);
    let counts = ["session", "tool_use", "observation", "summary", "prompt"];
    let counts = counts.map(|kind| of(&lines, kind).len());
    let wanted = match version {
        Oldest => [1, 0, 1, 1, 0],
        Five => [1, 0, 2, 1, 1],
        Nine | Thirteen => [1, 1, 2, 1, 1],
    };
    assert_eq!(counts, wanted);
    let first = of(&lines, "observation")[0];
    let own = first.observation.as_ref().expect("its fields");
    assert_eq!(
        (own.kind.as_deref(), first.id.as_deref()),
        (Some("bugfix"), Some("1"))
    );
    assert_eq!(first.session.as_deref(), Some("s-1"));
    assert_eq!(first.at.expect("a time").timestamp_millis(), AT);
    let host = if version == Thirteen {
        "codex"
    } else {
        "claude-code"
    };
    assert_eq!(first.host.as_deref(), Some(host));
    if version == Oldest {
        assert_eq!(own.narrative, "the pool leaked");
    } else {
        assert_eq!(own.concepts, ["gotcha"]);
        assert_eq!(own.facts, ["20 at most", "a \"b\""]);
        assert_eq!(own.files_modified, ["src/b.rs"]);
        let second = of(&lines, "observation")[1];
        let own = second.observation.as_ref().expect("its fields");
        assert_eq!(own.kind.as_deref(), Some("discovery"));
        assert_eq!(own.title.trim(), "open");
        assert_eq!(of(&lines, "prompt")[0].number, Some(1));
    }
    let project = if version == Thirteen {
        "name:whole"
    } else {
        "name:my-app"
    };
    assert_eq!(first.project, project);
    let all = json!(lines).to_string();
    for private in ["shut", "key</", "all of it"] {
        assert!(!all.contains(private), "{private}");
    }
    assert_eq!((id, json!(lines)), {
        let (id, lines) = read(&path, &[]);
        (id, json!(lines))
    });
    let (_, mapped) = read(&path, &[("my-app", "git:git.example.com/acme/my-app")]);
    let summary = of(&mapped, "summary")[0];
    assert_eq!(summary.project, "git:git.example.com/acme/my-app");
}

#[rstest]
#[case(Nine)]
#[case(Thirteen)]
fn what_reading_and_work_cost_comes_out_the_same(#[case] version: Version) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("claude-mem.db");
    make(&path, version);
    // What nobody keeps private, so that every text is counted whole.
    let connection = Connection::open(&path).expect("open");
    connection
        .execute_batch("update observations set title = 'open' where id = 2")
        .expect("made public");
    // As claude-mem counts: lengths in UTF-16, facts as their JSON text in a JSON text.
    let mut ask = connection
        .prepare(
            "select coalesce(title, ''), coalesce(subtitle, ''), coalesce(narrative, ''), facts,
               discovery_tokens from observations",
        )
        .expect("asked");
    let rows = ask.query_map([], |row| {
        let texts: [String; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        Ok((texts, row.get::<_, u32>(4)?))
    });
    let rows: Vec<_> = rows.expect("rows").map(|row| row.expect("a row")).collect();
    let read_there = rows.iter().map(|([title, subtitle, narrative, facts], _)| {
        let facts = json!(facts).to_string();
        let all = [title, subtitle, narrative, &facts];
        let all: usize = all.iter().map(|text| units(text)).sum();
        u32::try_from(all.div_ceil(4)).expect("few")
    });
    let there = (
        read_there.sum::<u32>(),
        rows.iter().map(|row| row.1).sum::<u32>(),
    );
    let (_, lines) = read(&path, &[]);
    let here = of(&lines, "observation").into_iter().map(|line| {
        let fields = line.observation.clone().expect("its fields");
        let draft = fields.parse(Oversize::Cut).expect("within its limits");
        (draft.read_tokens(), draft.work_tokens)
    });
    let here = here.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert_eq!(here, there);
}

#[test]
fn tables_that_no_version_has_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("claude-mem.db");
    make(&path, Thirteen);
    let (_, before) = read(&path, &[]);
    let connection = Connection::open(&path).expect("open");
    connection
        .execute_batch(&format!(
            "create table tool_uses (id integer primary key, content_session_id text,
               tool_name text, tool_input text, tool_response text, created_at_epoch integer);
             insert into tool_uses values (1, 's-1', 'Bash', '{{}}', '1', {AT});
             create table work_state_entries (id integer primary key, memory_session_id text,
               list text, fields text, created_at_epoch integer);
             insert into work_state_entries values (1, 'm-1', 'docs', '{{}}', {AT})"
        ))
        .expect("made");
    let (_, after) = read(&path, &[]);
    assert_eq!(json!(after), json!(before));
}

#[test]
fn a_strange_file_is_refused_and_a_growing_one_keeps_its_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "SQLite is not what this is").expect("written");
    assert!(!is_database(&text).expect("read"));
    let other = folder.path().join("other.db");
    let connection = Connection::open(&other).expect("a database");
    connection
        .execute_batch("create table notes (id integer)")
        .expect("made");
    let refused = Database::open(&other, Vec::new()).err().expect("refused");
    assert_eq!(refused.status(), 65, "{refused}");
    let broken = folder.path().join("broken.db");
    std::fs::write(&broken, [MAGIC, &[7; 4_096]].concat()).expect("written");
    let refused = Database::open(&broken, Vec::new()).err().expect("refused");
    assert_eq!(refused.status(), 65, "{refused}");

    // Its writer still runs, and what it wrote is in the log beside the file.
    let path = folder.path().join("claude-mem.db");
    make(&path, Nine);
    let writer = Connection::open(&path).expect("open");
    let (id, before) = read(&path, &[]);
    writer
        .execute_batch(
            "insert into observations (memory_session_id, project, type, title, created_at,
               created_at_epoch)
             values ('m-1', 'my-app', 'change', 'later', 'x', 1)",
        )
        .expect("written");
    let (same, after) = read(&path, &[]);
    assert_eq!((id, before.len() + 1), (same, after.len()));
    let ids = |lines: &[ExportLine]| -> Vec<_> { lines.iter().map(|l| l.event_id).collect() };
    let after = ids(&after);
    assert!(ids(&before).iter().all(|id| after.contains(id)));
    drop(writer);
}
