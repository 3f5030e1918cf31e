//! `GET /v1/changes`: what a client that was away catches up by.

use serde_json::{Value, json};

use crate::support::stream::Stream;
use crate::support::{Caller, PROJECT, TestApp, item, soon};

async fn page(caller: &Caller, question: &str) -> Value {
    caller.get(&format!("/v1/changes?{question}")).await.ok()
}

fn lines(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("items").iter();
    let line = |item: &Value| {
        let word = |name: &str| item[name].as_str().expect("a text").to_owned();
        format!(
            "{} {} {} {}",
            item["position"],
            word("op"),
            word("kind"),
            word("id")
        )
    };
    items.map(line).collect()
}

#[tokio::test]
async fn a_client_that_was_away_catches_up_and_brings_nothing_back_to_life() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let kept = owner.remember("kept", "").await;
    let gone = owner.remember("gone", "").await;
    let before = page(&member, "").await;
    assert_eq!(
        lines(&before)[1..],
        [
            format!("2 upsert observation {kept}"),
            format!("3 upsert observation {gone}")
        ]
    );
    assert_eq!(before["items"][1]["record"]["observation"]["title"], "kept");
    assert_eq!(before["items"][1]["author"], "ada");
    assert_eq!(before["items"][0]["kind"], "project");
    assert_eq!(before["items"][0]["record"]["key"], PROJECT);
    assert_eq!((&before["next"], &before["latest"]), (&json!(3), &json!(3)));

    let deleted = owner.delete(&format!("/v1/observations/{gone}")).await;
    assert_eq!(deleted.status, 204);
    owner.work("docs", json!({"task": "a"})).await;
    let epoch = before["epoch"].as_str().expect("an epoch");
    let after = page(&member, &format!("after=3&epoch={epoch}")).await;
    assert_eq!(lines(&after)[0], format!("4 delete observation {gone}"));
    assert_eq!(after["items"][0].get("record"), None);
    assert_eq!(
        after["items"][0]["event_id"],
        before["items"][2]["event_id"]
    );
    assert_eq!(after["items"][1]["record"]["list"], "docs");
    assert_eq!(after["items"][1]["id"], after["items"][1]["event_id"]);
    // Read from the start, the deletion is all that is left of it.
    let whole = page(&member, "after=0").await;
    let of_it = |line: &String| line.ends_with(&format!("observation {gone}"));
    let of_it: Vec<String> = lines(&whole).into_iter().filter(of_it).collect();
    assert_eq!(of_it, [format!("4 delete observation {gone}")]);
    assert!(!whole.to_string().contains("\"gone\""), "{whole}");
    // What is sent again stays deleted.
    let event = &before["items"][2]["event_id"];
    let mut again = item("observation", json!({"title": "gone"}));
    again["event_id"] = event.clone();
    let answer = owner.events(vec![again]).await.ok();
    assert_eq!(answer["items"][0]["status"], "deleted");
    assert_eq!(page(&member, "after=5").await["items"], json!([]));
}

#[tokio::test]
async fn a_purged_work_entry_is_a_deletion_to_whoever_follows() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    owner.work("docs", json!({"task": "sesame"})).await.ok();
    member.work("docs", json!({"task": "barley"})).await.ok();
    let before = page(&member, "").await;
    let entry = before["items"][1]["id"].as_str().expect("an id");
    assert_eq!(
        lines(&before)[1],
        format!("2 upsert work_entry {entry}"),
        "{before}"
    );
    let mut stream = Stream::open(&member, "/v1/stream?after=3").await;
    let ask = json!({"author": "ada", "kinds": ["work_entry"]});
    let purged = owner.post("/v1/purge", ask).await.ok();
    assert_eq!(purged["counts"], json!({"work_entry": 1}));
    let after = page(&member, "after=3").await;
    assert_eq!(lines(&after), [format!("4 delete work_entry {entry}")]);
    let gone = &after["items"][0];
    assert_eq!(gone["event_id"], before["items"][1]["event_id"]);
    assert_eq!(gone.get("record"), None);
    let told = soon(stream.line()).await;
    assert_eq!(told, (4, format!("delete work_entry {entry}")));
    // Read from the start, the deletion is all that is left of it.
    let whole = page(&member, "").await;
    assert!(!whole.to_string().contains("sesame"), "{whole}");
    let of_it: Vec<String> = lines(&whole)
        .into_iter()
        .filter(|line| line.ends_with(entry))
        .collect();
    assert_eq!(of_it, [format!("4 delete work_entry {entry}")]);
}

#[tokio::test]
async fn pages_follow_each_other_by_next() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let items = (0..7).map(|n| item("observation", json!({"title": format!("note {n}")})));
    owner.events(items.collect()).await.ok();
    let whole = lines(&page(&owner, "").await);
    assert_eq!(whole.len(), 8);
    let (mut all, mut after) = (Vec::new(), json!(0));
    while after != json!(8) {
        let some = page(&owner, &format!("after={after}&limit=3")).await;
        assert!(some["items"].as_array().expect("items").len() <= 3);
        all.extend(lines(&some));
        after = some["next"].clone();
    }
    assert_eq!(all, whole);
}

#[tokio::test]
async fn positions_beyond_the_last_and_of_another_epoch_are_unknown() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("note", "").await;
    let epoch = page(&owner, "").await["epoch"]
        .as_str()
        .expect("an epoch")
        .to_owned();
    for question in [
        "after=3",
        "epoch=other",
        "after=1&epoch=other",
        "after=9223372036854775807",
    ] {
        for path in ["changes", "stream"] {
            let reply = owner.get(&format!("/v1/{path}?{question}")).await;
            assert_eq!(reply.code(), "position_unknown", "{path} {question}");
            assert_eq!(reply.status, 410);
        }
    }
    for question in ["after=-1", "after=x", "limit=0", "limit=501"] {
        let reply = owner.get(&format!("/v1/changes?{question}")).await;
        assert_eq!(reply.code(), "invalid_field", "{question}");
    }
    // The other tenant's positions are of an epoch of their own.
    let stranger = app.stranger().await;
    let foreign = stranger.get(&format!("/v1/changes?epoch={epoch}")).await;
    assert_eq!(foreign.code(), "position_unknown");
    let mut tx = app.db.store.system("test").await.expect("begin");
    tx.renew_epochs(app.app.clock.now()).await.expect("renewed");
    tx.commit().await.expect("commit");
    let old = owner
        .get(&format!("/v1/changes?after=1&epoch={epoch}"))
        .await;
    assert_eq!(old.code(), "position_unknown");
    assert_ne!(page(&owner, "after=1").await["epoch"], epoch);
}

#[tokio::test]
async fn a_project_confines_and_one_that_is_not_yet_has_nothing() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("here", "").await;
    let elsewhere = owner.clone().in_project("name:other-app");
    elsewhere.remember("there", "").await;
    assert_eq!(lines(&page(&owner, "").await).len(), 2);
    assert_eq!(lines(&page(&owner, "project=*").await).len(), 4);
    let unborn = owner.clone().in_project("name:unborn");
    let nothing = page(&unborn, "").await;
    assert_eq!((lines(&nothing).len(), &nothing["next"]), (0, &json!(4)));
    assert_eq!(
        owner.clone().nowhere().get("/v1/changes").await.code(),
        "project_required"
    );
    let limited = app.limited_to("name:other-app").await;
    for question in ["", "project=*"] {
        let there = page(&limited, question).await;
        assert!(there.to_string().contains("\"there\""), "{there}");
        assert!(!there.to_string().contains("\"here\""), "{there}");
    }
    let refused = limited.get(&format!("/v1/changes?project={PROJECT}")).await;
    assert_eq!(refused.code(), "not_found");
}

#[tokio::test]
async fn tool_uses_are_named_to_those_alone_who_may_read_them() {
    use cairn_domain::scope::Scope;
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let body = json!({"tool": "Bash", "host_tool_use_id": "tu", "input": "{}", "output": "1"});
    owner.events(vec![item("tool_use", body)]).await.ok();
    let note = json!({"title": "note", "tool_uses": ["T1"]});
    owner.events(vec![item("observation", note)]).await.ok();
    let without = app.owner_with(&[Scope::MemoryRead]).await;
    let named = |page: Value| page["items"][1]["record"]["observation"]["tool_uses"].clone();
    assert_eq!(named(page(&owner, "").await), json!(["T1"]));
    assert_ne!(named(page(&without, "").await), json!(["T1"]));
}
