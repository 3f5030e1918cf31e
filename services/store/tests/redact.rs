//! Stored rows are read again: what an older version let pass goes from every table, with all that
//! was derived from it.

mod support;

use cairn_domain::event::{EventBody, EventDraft};
use cairn_domain::ids::ToolUseId;
use cairn_domain::project::ProjectSet;
use cairn_domain::redact::VERSION;
use cairn_domain::tool_use::{Evidence, ToolUseDraft};
use cairn_store::redact::{Rescan, Rescanned, Shelf};
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::tool_uses::EvidenceRead;
use cairn_store::work_state::WorkPick;
use serde_json::json;
use sqlx::PgConnection;
use support::*;

fn secret() -> String {
    ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat()
}

/// Reads all of a tenant again in batches of so many.
async fn redact_all(db: &TestDb, twin: &Twin, most: u32, all: bool) -> Vec<Rescanned> {
    let mut totals = Vec::new();
    for shelf in Shelf::ALL {
        let mut total = Rescanned::default();
        loop {
            let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
            let rescan = Rescan {
                shelf,
                after: total.last,
                most,
                all,
                now: minute(9),
            };
            let done = tx.redact_stored(rescan).await.expect("read again");
            tx.commit().await.expect("commit");
            total.seen += done.seen;
            total.changed += done.changed;
            if done.last.is_none() {
                break;
            }
            total.last = done.last;
        }
        totals.push(total);
    }
    totals
}

/// Every row of every table as text, tool uses unpacked.
async fn everything(admin: &mut PgConnection) -> String {
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
           and not relispartition order by 1",
    )
    .fetch_all(&mut *admin)
    .await
    .expect("tables");
    let mut text = String::new();
    for table in tables {
        let rows = format!("select t::text from {table} t");
        let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(rows))
            .fetch_all(&mut *admin)
            .await
            .expect("rows");
        text.extend(rows);
    }
    let packed: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as("select input, output from tool_uses")
        .fetch_all(&mut *admin)
        .await
        .expect("rows");
    for side in packed
        .into_iter()
        .flat_map(|(input, output)| [input, output])
    {
        let side = zstd::bulk::decompress(&side, 1024 * 1024).unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&side));
    }
    text
}

/// An entry as a version without redaction appended it.
fn old_entry(list: &str, minutes: i64, fields: serde_json::Value) -> EventDraft {
    let mut draft = entry("plain", minutes, json!({"task": "any"}));
    if let EventBody::WorkEntry { entry, .. } = &mut draft.body {
        entry.list = list.to_owned();
        entry.task = fields["task"].as_str().map(str::to_owned);
        entry.fields = fields.to_string();
    }
    draft
}

async fn forget_version(admin: &mut PgConnection) {
    for table in ["records", "tool_uses", "work_entries"] {
        let forget = format!("update {table} set redacted = 0");
        sqlx::query(sqlx::AssertSqlSafe(forget))
            .execute(&mut *admin)
            .await
            .expect("forgotten");
    }
}

/// Events as an older version would have stored them.
async fn fill(db: &TestDb) -> Twin {
    let (me, _) = db.twins;
    let secret = secret();
    let mut call = tool_use("common");
    call.body = EventBody::ToolUse(ToolUseDraft {
        tool: "Bash".to_owned(),
        host_tool_use_id: Some("tu_7".to_owned()),
        input: Evidence::of(&json!({"command": format!("export API_TOKEN={secret}")}).to_string()),
        output: Evidence::of(&json!([secret, "kept output"]).to_string()),
        failed: None,
        files: vec![format!("src/{secret}.rs")],
    });
    let mut told = observation(&format!("uses {secret} here"));
    told.branch = Some(format!("fix/{secret}"));
    let events = [
        told,
        observation("nothing of it"),
        summary(&format!("asked for {secret}")),
        prompt(&format!("please use {secret} kept prompt")),
        call,
        turn_end(&format!("done with {secret}")),
        old_entry("plain", 1, json!({"task": "keep", "note": "as it is"})),
        old_entry(
            "plain",
            2,
            json!({"task": format!("rotate {secret}"), "status": "todo"}),
        ),
        old_entry("plain", 3, json!({"task": "keep", "status": secret})),
        old_entry(
            &format!("list {secret}"),
            4,
            json!({"task": "inside", "n": 1}),
        ),
        in_project(&secret, observation("elsewhere")),
        session_end(),
    ];
    record(&db.store, &me, me.owner, &events).await;
    forget_version(&mut db.admin().await).await;
    me
}

#[tokio::test]
async fn what_an_older_version_let_pass_goes_from_everywhere() {
    let db = TestDb::new().await;
    let me = fill(&db).await;
    let mut admin = db.admin().await;
    let secret = secret();
    let lexeme = secret.to_lowercase();
    let before = everything(&mut admin).await;
    assert!(before.contains(&secret));
    let revisions =
        "select context_revision from projects where tenant_id = $1 and name = 'my-app'";
    let positions = "select position from tenant_counters where tenant_id = $1";
    let key = me.tenant.key();
    let read = async |admin: &mut PgConnection, sql: &'static str| -> i64 {
        let read = sqlx::query_scalar(sql).bind(key).fetch_one(admin).await;
        read.expect("a number")
    };
    let (revision, position) = (
        read(&mut admin, revisions).await,
        read(&mut admin, positions).await,
    );

    let totals = redact_all(&db, &me, 2, false).await;
    let changed: Vec<u64> = totals.iter().map(|total| total.changed).collect();
    assert_eq!(changed[..5], [3, 1, 3, 1, 1], "{totals:?}");
    let after = everything(&mut admin).await;
    let tail = &lexeme[4..];
    assert!(!after.to_lowercase().contains(tail), "{after}");
    assert!(after.contains("[redacted:github-token]") && after.contains("kept output"));
    assert!(after.contains("kept prompt") && after.contains("as it is"));
    assert!(read(&mut admin, revisions).await > revision);
    // Three records, three entries, one project.
    assert_eq!(read(&mut admin, positions).await, position + 7);
    let old: i64 = sqlx::query_scalar(
        "select (select count(*) from records where redacted < $1)
           + (select count(*) from tool_uses where redacted < $1)
           + (select count(*) from work_entries where redacted < $1)",
    )
    .bind(VERSION)
    .fetch_one(&mut admin)
    .await
    .expect("a count");
    assert_eq!(old, 0);
    let noted: i64 = sqlx::query_scalar("select count(*) from audit where action = 'redact'")
        .fetch_one(&mut admin)
        .await
        .expect("a count");
    assert!(noted >= 5);

    let again = redact_all(&db, &me, 100, false).await;
    assert!(again[..3].iter().all(|total| total.seen == 0), "{again:?}");
    let again = redact_all(&db, &me, 100, true).await;
    assert!(again.iter().all(|total| total.changed == 0), "{again:?}");
    assert!(again[..3].iter().all(|total| total.seen > 0), "{again:?}");
    assert_eq!(read(&mut admin, positions).await, position + 7);
}

#[tokio::test]
async fn lists_say_what_their_entries_fold_to_and_the_rest_is_found_as_before() {
    let db = TestDb::new().await;
    let me = fill(&db).await;
    redact_all(&db, &me, 100, false).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let projects = ProjectSet::All;
    let pick = WorkPick {
        projects: &projects,
        project: None,
        list: None,
        closed: true,
    };
    let state = tx.work_state(pick).await.expect("read");
    let mut lists: Vec<(String, Vec<String>)> = Vec::new();
    for list in state.lists {
        let tasks = list
            .tasks
            .iter()
            .map(|task| task.task.clone().unwrap_or_default());
        lists.push((list.name.clone(), tasks.collect()));
    }
    lists.sort();
    let task = |name: &str| name.to_owned();
    assert_eq!(
        lists,
        [
            (task("list [redacted:github-token]"), vec![task("inside")]),
            (
                task("plain"),
                vec![task("keep"), task("rotate [redacted:github-token]")]
            ),
        ]
    );
    let read = EvidenceRead {
        at: minute(9),
        detail: json!({}),
    };
    let found = tx
        .read_tool_uses(&[ToolUseId(1)], &reader(me.owner), &read)
        .await;
    let call = found
        .expect("read")
        .remove(0)
        .unpack()
        .expect("unpacked")
        .call;
    assert_eq!(call.input, Evidence::of(&call.input.text));
    assert_eq!(
        call.output.text,
        r#"["[redacted:github-token]","kept output"]"#
    );
    let records = tx
        .get_records(&ids(&["1", "2", "S1", "P1"]), &reader(me.owner))
        .await;
    let titles: Vec<String> = records
        .expect("read")
        .into_iter()
        .map(|r| r.row.title)
        .collect();
    assert_eq!(
        titles,
        [
            "uses [redacted:github-token] here",
            "nothing of it",
            "asked for [redacted:github-token]",
            "please use [redacted:github-token] kept prompt"
        ]
    );
    tx.commit().await.expect("commit");
}

#[tokio::test]
async fn evidence_that_cannot_be_read_is_withheld() {
    let db = TestDb::new().await;
    let me = fill(&db).await;
    let mut admin = db.admin().await;
    sqlx::query("update tool_uses set input = '\\x00'")
        .execute(&mut admin)
        .await
        .expect("spoilt");
    redact_all(&db, &me, 100, false).await;
    let mut tx = db.store.tenant(me.tenant, "test").await.expect("begin");
    let read = EvidenceRead {
        at: minute(9),
        detail: json!({}),
    };
    let found = tx
        .read_tool_uses(&[ToolUseId(1)], &reader(me.owner), &read)
        .await;
    let call = found
        .expect("read")
        .remove(0)
        .unpack()
        .expect("unpacked")
        .call;
    assert_eq!(call.input.text, "\"[withheld]\"");
}

#[tokio::test]
async fn writers_and_the_second_reading_do_not_cross() {
    let db = TestDb::new().await;
    let me = fill(&db).await;
    let writes = async {
        for count in 0..20 {
            let events = [
                observation(&format!("written meanwhile {count}")),
                entry("plain", 20 + count, json!({"task": "keep", "n": count})),
            ];
            record(&db.store, &me, me.owner, &events).await;
        }
    };
    let (totals, ()) = tokio::join!(redact_all(&db, &me, 1, false), writes);
    assert_eq!(totals[0].changed, 3, "{totals:?}");
    let text = everything(&mut db.admin().await).await;
    assert!(!text.contains(&secret()));
    assert!(text.contains("written meanwhile 19"));
}
