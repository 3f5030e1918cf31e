//! Records by id: who may read them, how they read.

use serde_json::json;

use crate::support::{TestApp, item};

#[tokio::test]
async fn a_record_reads_back_as_it_was_written() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let body = json!({"type": "bugfix", "title": "修复连接池泄漏", "subtitle": "s", "narrative": "n\n# x",
        "facts": ["f1", "f2"], "concepts": ["gotcha", "gotcha", "pattern"],
        "files_read": ["a.rs"], "files_modified": ["src/pool.rs"], "work_tokens": 1800,
        "tool_uses": ["T1"]});
    let mut event = item("observation", body);
    event["at"] = json!("2026-10-10T08:45:00.120Z");
    event["branch"] = json!("main");
    caller.events(vec![event]).await.ok();
    let record = caller.get("/v1/observations/%231").await.ok();
    insta::with_settings!({filters => vec![
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "[uuid]"),
        (r#""arrived_at": "[^"]+""#, r#""arrived_at": "[time]""#),
    ]}, {
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).expect("JSON"), @r#"
        {
          "id": "1",
          "kind": "observation",
          "event_id": "[uuid]",
          "project": "name:alpha-app",
          "project_name": "alpha-app",
          "session": "s-1",
          "host": "claude-code",
          "author": "ada",
          "at": "2026-10-10T08:45:00.120Z",
          "arrived_at": "[time]",
          "position": 2,
          "visibility": "team",
          "origin": "api",
          "branch": "main",
          "observation": {
            "type": "bugfix",
            "title": "修复连接池泄漏",
            "subtitle": "s",
            "narrative": "n\n# x",
            "facts": [
              "f1",
              "f2"
            ],
            "concepts": [
              "gotcha",
              "pattern"
            ],
            "files_read": [
              "a.rs"
            ],
            "files_modified": [
              "src/pool.rs"
            ],
            "work_tokens": 1800,
            "tool_uses": [
              "T1"
            ]
          },
          "read_tokens": 8
        }
        "#);
    });
}

#[tokio::test]
async fn a_batch_keeps_the_order_and_names_what_is_missing() {
    let app = TestApp::start().await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    for title in ["one", "two"] {
        owner.remember(title, "").await;
    }
    stranger.remember("three", "").await;
    let asked = json!({"ids": ["2", "#1", "S1", "9", "2"]});
    let answer = owner.post("/v1/observations/batch", asked).await.ok();
    let ids: Vec<_> = answer["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|i| &i["id"])
        .collect();
    assert_eq!(ids, [&json!("2"), &json!("1")]);
    assert_eq!(answer["missing"], json!(["S1", "9"]));
    for bad in [
        json!({"ids": []}),
        json!({"ids": ["x"]}),
        json!({"ids": vec!["1"; 101]}),
    ] {
        assert_eq!(
            owner.post("/v1/observations/batch", bad).await.code(),
            "invalid_field"
        );
    }
}

#[tokio::test]
async fn another_tenants_record_looks_exactly_like_a_missing_one() {
    let app = TestApp::start().await;
    let (owner, stranger) = (app.owner().await, app.stranger().await);
    owner.remember("one", "").await;
    owner.remember("two", "").await;
    stranger.remember("theirs", "").await;
    // Number 2 exists in the owner's tenant, number 3 in none.
    let theirs = stranger.get("/v1/observations/2").await;
    let missing = stranger.get("/v1/observations/3").await;
    assert_eq!(theirs.status, 404);
    let without_id = |reply: &crate::support::Reply| {
        let mut body = reply.json();
        body.as_object_mut()
            .expect("an object")
            .remove("instance")
            .expect("a request id");
        body
    };
    assert_eq!(without_id(&theirs), without_id(&missing));
    assert_eq!(stranger.delete("/v1/observations/2").await.status, 404);
    assert_eq!(owner.get("/v1/observations/2").await.status, 200);
}

#[tokio::test]
async fn tool_uses_are_named_only_to_those_who_may_read_them() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let body = json!({"title": "t", "tool_uses": ["T777"]});
    owner.events(vec![item("observation", body)]).await.ok();
    let reader = app
        .owner_with(&[cairn_domain::scope::Scope::MemoryRead])
        .await;
    let asked = json!({"ids": ["1"]});
    for (caller, names) in [(owner, true), (reader, false)] {
        let one = caller.get("/v1/observations/1").await.text;
        let many = caller
            .post("/v1/observations/batch", asked.clone())
            .await
            .text;
        assert_eq!(
            (one.contains("T777"), many.contains("T777")),
            (names, names)
        );
    }
}

#[tokio::test]
async fn a_member_deletes_its_own_and_an_admin_those_of_others() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    owner.remember("owner's", "").await;
    member.remember("member's", "").await;
    let refused = member.delete("/v1/observations/1").await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (403, "insufficient_scope")
    );
    assert_eq!(member.delete("/v1/observations/2").await.status, 204);
    member.remember("member's again", "").await;
    assert_eq!(owner.delete("/v1/observations/3").await.status, 204);
    assert_eq!(
        owner.delete("/v1/observations/99").await.code(),
        "not_found"
    );
}

#[tokio::test]
async fn a_project_limited_key_sees_that_project_only() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("here", "").await;
    let elsewhere = owner.clone().in_project("name:beta");
    elsewhere.remember("there", "").await;
    let limited = app.limited_to("name:beta").await;
    assert_eq!(limited.get("/v1/observations/2").await.status, 200);
    assert_eq!(limited.get("/v1/observations/1").await.code(), "not_found");
    let all = limited
        .mem_search(json!({"query": "here there", "project": "*"}))
        .await
        .ok();
    assert_eq!(all["rows"].as_array().expect("rows").len(), 1);
    let other = limited
        .mem_search(json!({"query": "here", "project": "name:alpha-app"}))
        .await;
    assert_eq!(other.code(), "not_found");
    // A name that also fits projects the key may not see names its own, and no other is heard of.
    for key in ["git:a.example/x/beta", "git:b.example/y/beta"] {
        owner
            .clone()
            .in_project(key)
            .remember("there too", "")
            .await;
    }
    let named = limited
        .mem_search(json!({"query": "there", "project": "beta"}))
        .await
        .ok();
    assert_eq!(named["rows"][0]["id"], "2");
    assert!(
        !limited
            .get("/v1/context?project=beta")
            .await
            .text
            .contains("git:")
    );
    let mut elsewhere = item("observation", json!({"title": "elsewhere"}));
    owner.events(vec![elsewhere.clone()]).await.ok();
    let check = json!({"event_ids": [elsewhere["event_id"]]});
    let checked = limited.post("/v1/events/check", check).await.ok();
    assert_eq!(checked["items"][0]["status"], "unknown");
    elsewhere["project"] = json!({"key": "name:beta"});
    let repeated = limited.events(vec![elsewhere]).await.json();
    assert_eq!(repeated["items"][0]["code"], "event_id_reused");
    assert!(repeated["items"][0]["id"].is_null());
    let astray = limited.clone().in_project("name:alpha-app");
    assert_eq!(astray.get("/v1/context").await.code(), "not_found");
    let reply = astray
        .events(vec![item("observation", json!({"title": "t"}))])
        .await;
    assert_eq!(reply.json()["items"][0]["code"], "not_found");
}
