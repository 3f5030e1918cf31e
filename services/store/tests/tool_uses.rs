//! Reading tool uses by any of their names, who may, what the audit log says of it, and deleting
//! them.

mod support;

use cairn_domain::event::{EventBody, EventDraft, Visibility};
use cairn_domain::ids::{PrincipalId, ToolUseId};
use cairn_domain::project::Reader;
use cairn_domain::tool_use::{Evidence, ToolUse, ToolUseName};
use cairn_store::StoreError;
use cairn_store::events::EventOutcome;
use cairn_store::records::Deleted;
use cairn_store::test_util::{TestDb, Twin};
use cairn_store::tool_uses::EvidenceRead;
use serde_json::{Value, json};
use support::*;

fn names(texts: &[&str]) -> Vec<ToolUseName> {
    let name = |text: &&str| text.parse().expect("a name");
    texts.iter().map(name).collect()
}

/// A call to which its host gave this id, or none.
fn of_host(id: Option<&str>, mut draft: EventDraft) -> EventDraft {
    let EventBody::ToolUse(own) = &mut draft.body else {
        unreachable!("a tool use")
    };
    own.host_tool_use_id = id.map(str::to_owned);
    draft
}

fn evidence_read() -> EvidenceRead {
    EvidenceRead {
        at: minute(7),
        detail: json!({"part": 1}),
    }
}

/// Finds, reads and commits, as the server does.
async fn read(db: &TestDb, twin: &Twin, asked: &[&str], reader: &Reader) -> Vec<ToolUse> {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx.find_tool_uses(&names(asked), reader).await;
    let ids: Vec<ToolUseId> = found.expect("found").iter().map(|found| found.id).collect();
    let packed = tx.read_tool_uses(&ids, reader, &evidence_read()).await;
    tx.commit().await.expect("commit");
    let unpacked = packed.expect("read").into_iter().map(|one| one.unpack());
    unpacked.collect::<Result<_, _>>().expect("unpacked")
}

/// The ids that a reader reads, as printed.
async fn seen(db: &TestDb, twin: &Twin, asked: &[&str], reader: &Reader) -> Vec<String> {
    let uses = read(db, twin, asked, reader).await;
    uses.iter().map(|one| one.id.to_string()).collect()
}

/// Who read what, in order.
async fn audited(db: &TestDb) -> Vec<(i32, String, Value)> {
    sqlx::query_as(
        "select actor_id, target, detail from audit where action = 'tool_use.read'
         order by audit_id",
    )
    .fetch_all(&mut db.admin().await)
    .await
    .expect("rows")
}

async fn set(db: &TestDb, settings: Value) {
    sqlx::query("update tenants set settings = $1")
        .bind(settings)
        .execute(&mut db.admin().await)
        .await
        .expect("the settings");
}

#[tokio::test]
async fn a_tool_use_comes_back_whole_by_any_of_its_names() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    // What no value type would keep: a key that stands twice, a long number, deep nesting.
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let text = format!(
        "{{\"n\":{},\"n\": 1.0e0,\"d\":{deep},\"e\":\"\\ud83d\"}}",
        "9".repeat(400)
    );
    let mut event = of_host(Some("toolu_9"), tool_use(&text));
    event.agent_id = Some("a-1".to_owned());
    record(&db.store, &twin, twin.owner, &[event.clone()]).await;
    let all = reader(twin.owner);
    for name in ["T1", "#1", "1", "toolu_9"] {
        let [one] = &read(&db, &twin, &[name], &all).await[..] else {
            panic!("one: {name}")
        };
        let EventBody::ToolUse(stored) = &event.body else {
            unreachable!("a tool use")
        };
        assert_eq!(&one.call, stored);
        assert_eq!(one.call.output, Evidence::of(&text));
        assert_eq!((one.id, one.event_id), (ToolUseId(1), event.event_id));
        assert_eq!((one.at, one.arrived_at), (minute(0), minute(10_000)));
        assert_eq!(
            (one.host.as_str(), one.session.as_str()),
            ("claude-code", "s-1")
        );
        assert_eq!(
            (one.author.as_str(), one.project.name.as_str()),
            ("ada", "my-app")
        );
        assert_eq!(one.visibility, Visibility::Team);
        assert_eq!(
            (one.agent_id.as_deref(), one.observation),
            (Some("a-1"), None)
        );
        assert_eq!(one.checkout.as_deref(), Some("~/my-app"));
    }
}

#[tokio::test]
async fn a_cut_text_keeps_the_size_and_digest_of_the_whole() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let whole = format!("\"{}\"", "修".repeat(40_000));
    record(&db.store, &twin, twin.owner, &[tool_use(&whole)]).await;
    let uses = read(&db, &twin, &["T1"], &reader(twin.owner)).await;
    assert_eq!(uses[0].call.output, Evidence::of(&whole));
    assert!(uses[0].call.output.is_cut() && !uses[0].call.input.is_cut());
}

#[tokio::test]
async fn digits_mean_our_number_and_a_hosts_id_and_the_order_is_the_one_asked() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        of_host(Some("3"), tool_use("1")),
        of_host(Some("x"), tool_use("2")),
        of_host(None, tool_use("3")),
        of_host(Some("3"), tool_use("4")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let all = reader(twin.owner);
    assert_eq!(seen(&db, &twin, &["3"], &all).await, ["T3", "T4", "T1"]);
    assert_eq!(seen(&db, &twin, &["T3"], &all).await, ["T3"]);
    let asked = ["T3", "nothing", "3"];
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let found = tx
        .find_tool_uses(&names(&asked), &all)
        .await
        .expect("found");
    let by_name: Vec<_> = found.into_iter().map(|one| (one.id.0, one.names)).collect();
    assert_eq!(by_name, [(3, vec![0, 2]), (4, vec![2]), (1, vec![2])]);
    let asked = ["x", "nothing", "T4", "3", "2", "T9223372036854775807"];
    assert_eq!(
        seen(&db, &twin, &asked, &all).await,
        ["T2", "T4", "T3", "T1"]
    );
    assert_eq!(seen(&db, &twin, &[], &all).await, [""; 0]);
}

#[tokio::test]
async fn an_id_that_thousands_share_names_the_newest_and_hides_no_other_name() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let same = (0..150).map(|_| of_host(Some("call_1"), tool_use("null")));
    let own = (0..99).map(|n| of_host(Some(&format!("own-{n}")), tool_use("null")));
    let events: Vec<_> = same.chain(own).collect();
    record(&db.store, &twin, twin.owner, &events).await;
    let all = reader(twin.owner);
    assert_eq!(
        seen(&db, &twin, &["call_1"], &all).await,
        ["T150", "T149", "T148", "T147", "T146"]
    );
    let texts: Vec<String> = (0..98).map(|n| format!("own-{n}")).collect();
    let mut asked: Vec<&str> = vec!["call_1"];
    asked.extend(texts.iter().map(String::as_str));
    asked.push("T149");
    let found = seen(&db, &twin, &asked, &all).await;
    assert_eq!(found.len(), 100);
    assert_eq!(found[..2], ["T150", "T149"]);
    let own: Vec<String> = (151..249).map(|number| format!("T{number}")).collect();
    assert_eq!(found[2..], own);
}

#[tokio::test]
async fn hostile_names_find_nothing_and_break_nothing() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[tool_use("null")]).await;
    let all = reader(twin.owner);
    let asked = [
        "' or 1=1 --",
        "%",
        "_",
        "\\",
        "{}",
        "{\"T1\"}",
        "T1 ; drop",
        "\u{202e}",
        "t1 1",
    ];
    assert_eq!(seen(&db, &twin, &asked, &all).await, [""; 0]);
}

#[tokio::test]
async fn the_tenant_decides_whether_evidence_is_its_authors_alone() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [tool_use("1"), private(tool_use("2"))];
    record(&db.store, &twin, twin.owner, &events).await;
    let asked = ["T1", "T2", "tu_9"];
    let (author, other) = (reader(twin.owner), reader(twin.member));
    for (settings, others) in [
        (json!({}), vec!["T1"]),
        (json!({"evidence_visibility": "team"}), vec!["T1"]),
        (json!({"evidence_visibility": "author"}), vec![]),
        // What means nothing opens nothing.
        (json!({"evidence_visibility": "everyone"}), vec![]),
        (json!({"evidence_visibility": ["team"]}), vec![]),
    ] {
        set(&db, settings.clone()).await;
        let own = seen(&db, &twin, &asked, &author).await;
        assert_eq!(own, ["T1", "T2"], "{settings}");
        assert_eq!(seen(&db, &twin, &asked, &other).await, others, "{settings}");
    }
}

#[tokio::test]
async fn nothing_outside_the_readers_projects_is_read() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [
        in_project("a", tool_use("1")),
        in_project("b", tool_use("2")),
    ];
    record(&db.store, &twin, twin.owner, &events).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let a = tx.find_projects("a").await.expect("find")[0].project.id;
    let b = tx.find_projects("b").await.expect("find")[0].project.id;
    for (projects, sees) in [
        (vec![a], vec!["T1"]),
        (vec![a, b], vec!["T1", "T2"]),
        (vec![], vec![]),
    ] {
        let reader = reader_of(twin.owner, &projects);
        let asked = ["T1", "T2"];
        assert_eq!(seen(&db, &twin, &asked, &reader).await, sees);
        // Finding is no way around reading: ids that were found for others stay closed.
        let ids = [ToolUseId(1), ToolUseId(2)];
        let read = tx.read_tool_uses(&ids, &reader, &evidence_read()).await;
        assert_eq!(read.expect("read").len(), sees.len());
    }
}

#[tokio::test]
async fn each_tool_use_that_is_read_has_its_line_in_the_audit_log() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [tool_use("1"), tool_use("2"), private(tool_use("3"))];
    record(&db.store, &twin, twin.owner, &events).await;
    read(&db, &twin, &["T2", "T1", "T44"], &reader(twin.member)).await;
    let line = |who: PrincipalId, target: &str| (who.key, target.to_owned(), json!({"part": 1}));
    let wanted = [line(twin.member, "T2"), line(twin.member, "T1")];
    assert_eq!(audited(&db).await, wanted);
    // What was not read leaves none: private to another, missing, given up.
    read(&db, &twin, &["T3", "T44"], &reader(twin.member)).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let (ids, reader) = ([ToolUseId(1)], reader(twin.member));
    let given_up = tx.read_tool_uses(&ids, &reader, &evidence_read()).await;
    assert_eq!(given_up.expect("read").len(), 1);
    drop(tx);
    assert_eq!(audited(&db).await, wanted);
    let at: Vec<chrono::DateTime<chrono::Utc>> =
        sqlx::query_scalar("select at from audit where action = 'tool_use.read'")
            .fetch_all(&mut db.admin().await)
            .await
            .expect("times");
    assert_eq!(at, [minute(7); 2]);
}

#[tokio::test]
async fn what_cannot_be_written_down_cannot_be_read() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[tool_use("secret")]).await;
    sqlx::query("alter table audit add constraint no_room check (action <> 'tool_use.read')")
        .execute(&mut db.admin().await)
        .await
        .expect("no more room");
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let ids = [ToolUseId(1)];
    let refused = tx
        .read_tool_uses(&ids, &reader(twin.owner), &evidence_read())
        .await
        .expect_err("neither");
    assert!(matches!(refused, StoreError::Bug(_)), "{refused:?}");
}

#[tokio::test]
async fn a_stored_value_of_no_meaning_is_named() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    record(&db.store, &twin, twin.owner, &[tool_use("null")]).await;
    let bomb = zstd::bulk::compress(&vec![b' '; 1 << 20], 3).expect("packed");
    for packed in [
        b"no zstd".to_vec(),
        bomb,
        zstd::bulk::compress(b"\xff", 3).expect("packed"),
    ] {
        sqlx::query("update tool_uses set output = $1")
            .bind(packed)
            .execute(&mut db.admin().await)
            .await
            .expect("spoilt");
        let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
        let ids = [ToolUseId(1)];
        let read = tx
            .read_tool_uses(&ids, &reader(twin.owner), &evidence_read())
            .await;
        let spoilt = read.expect("read").remove(0).unpack().expect_err("no text");
        assert_eq!(
            spoilt.to_string(),
            "tool_uses.output of T1 holds a value of no meaning"
        );
    }
}

async fn delete(db: &TestDb, twin: &Twin, number: i64, reader: &Reader, admin: bool) -> Deleted {
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let deleted = tx
        .delete_tool_use(ToolUseId(number), reader, admin, minute(1))
        .await;
    tx.commit().await.expect("commit");
    deleted.expect("answered")
}

#[tokio::test]
async fn deleting_ends_a_tool_use_for_good_and_its_event_stays_used() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [tool_use("1"), tool_use("2")];
    record(&db.store, &twin, twin.owner, &events).await;
    let (author, other) = (reader(twin.owner), reader(twin.member));
    assert_eq!(
        delete(&db, &twin, 1, &other, false).await,
        Deleted::Forbidden
    );
    let elsewhere = reader_of(twin.owner, &[]);
    assert_eq!(
        delete(&db, &twin, 1, &elsewhere, true).await,
        Deleted::NotFound
    );
    assert_eq!(delete(&db, &twin, 1, &author, false).await, Deleted::Done);
    assert_eq!(
        seen(&db, &twin, &["T1", "1", "tu_9"], &author).await,
        ["T2"]
    );
    // Again is no error to those who could; to the others it is gone.
    assert_eq!(delete(&db, &twin, 1, &author, false).await, Deleted::Done);
    assert_eq!(delete(&db, &twin, 1, &other, true).await, Deleted::Done);
    assert_eq!(
        delete(&db, &twin, 1, &other, false).await,
        Deleted::NotFound
    );
    assert_eq!(
        delete(&db, &twin, 9, &author, true).await,
        Deleted::NotFound
    );

    let again = record(&db.store, &twin, twin.owner, &events[..1]).await;
    assert_eq!(again.outcomes, [EventOutcome::Deleted]);
    let next = record(&db.store, &twin, twin.owner, &[tool_use("3")]).await;
    assert_eq!(stored_ids(&next), [Some("T3")]);
}

#[tokio::test]
async fn what_is_its_authors_alone_no_admin_deletes_or_hears_of() {
    let db = TestDb::new().await;
    let twin = db.twins.0;
    let events = [private(tool_use("1")), tool_use("2"), tool_use("3")];
    record(&db.store, &twin, twin.owner, &events).await;
    let (author, admin) = (reader(twin.owner), reader(twin.member));
    assert_eq!(delete(&db, &twin, 1, &admin, true).await, Deleted::NotFound);
    assert_eq!(delete(&db, &twin, 1, &author, false).await, Deleted::Done);
    assert_eq!(delete(&db, &twin, 1, &admin, true).await, Deleted::NotFound);
    assert_eq!(delete(&db, &twin, 2, &admin, true).await, Deleted::Done);
    set(&db, json!({"evidence_visibility": "author"})).await;
    for number in [2, 3] {
        assert_eq!(
            delete(&db, &twin, number, &admin, true).await,
            Deleted::NotFound
        );
    }
    assert_eq!(delete(&db, &twin, 3, &author, false).await, Deleted::Done);
}
