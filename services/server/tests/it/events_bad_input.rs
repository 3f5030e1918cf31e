//! Ingest of what nobody should send: contract answers, never a 500.

use rstest::rstest;
use serde_json::json;

use crate::support::{PROJECT, TestApp, item};

/// A batch of one tool use whose input and output are written exactly so.
fn tool_use(input: &str, output: &str) -> String {
    format!(
        r#"{{"project":{{"key":"{PROJECT}"}},"items":[{{"event_id":"{}","kind":"tool_use",
        "session":{{"host":"claude-code","id":"s-1"}},
        "body":{{"tool":"Bash","input":{input},"output":{output}}}}}]}}"#,
        uuid::Uuid::now_v7()
    )
}

#[tokio::test]
async fn c025_a_nul_byte_becomes_visible_and_the_rest_is_found() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let answer = caller
        .events(vec![
            item(
                "tool_use",
                json!({"tool": "Bash", "input": "{}", "output": "\"a\""}),
            ),
            item(
                "tool_use",
                json!({"tool": "Bash", "input": "{}", "output": "ELF\0\u{1} header"}),
            ),
            item(
                "observation",
                json!({"title": "ELF\0file", "narrative": "its header"}),
            ),
        ])
        .await
        .ok();
    assert!(
        answer["items"]
            .as_array()
            .expect("items")
            .iter()
            .all(|i| i["status"] == "stored")
    );
    let found = caller.mem_search(json!({"query": "header"})).await.ok();
    assert_eq!(found["rows"][0]["title"], "ELF\u{fffd}file");
    let packed: Vec<u8> = sqlx::query_scalar("select output from tool_uses where number = 2")
        .fetch_one(&mut app.db.admin().await)
        .await
        .expect("stored");
    let output = zstd::decode_all(packed.as_slice()).expect("unpacked");
    assert_eq!(
        String::from_utf8(output).expect("text"),
        "ELF\u{fffd}\u{1} header"
    );
}

#[tokio::test]
async fn c006_half_an_emoji_is_stored_as_the_replacement_character() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    for title in [r"ok \ud83d done", r"ok \ude00 done", r"\ud83d\ud83d\ude00"] {
        let body = format!(
            r#"{{"project":{{"key":"{PROJECT}"}},"items":[{{"event_id":"{}","kind":"observation",
            "body":{{"title":"{title}","bad\ud83dkey":1}}}}]}}"#,
            uuid::Uuid::now_v7()
        );
        let answer = caller.post_text("/v1/events", body).await.ok();
        assert_eq!(answer["items"][0]["status"], "stored", "{title}");
        let id = answer["items"][0]["id"].as_str().expect("an id");
        let record = caller.get(&format!("/v1/observations/{id}")).await.ok();
        let kept = record["observation"]["title"].as_str().expect("a title");
        assert!(kept.contains('\u{fffd}'), "{kept}");
    }
}

#[tokio::test]
async fn c027_too_many_different_words_and_c028_too_long_a_word() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let words: Vec<String> = (0..200_000).map(|n| format!("w{n}")).collect();
    let many = format!("alphafirst {}", words.join(" "));
    let long = format!("{} needle", "a".repeat(3_000));
    for event in [
        item(
            "tool_use",
            json!({"tool": "Bash", "input": "{}", "output": many}),
        ),
        item("observation", json!({"title": "many", "narrative": many})),
        item("observation", json!({"title": "long", "narrative": long})),
    ] {
        assert_eq!(
            caller.events(vec![event]).await.ok()["items"][0]["status"],
            "stored"
        );
    }
    for (query, id) in [("alphafirst", "1"), ("needle", "2")] {
        let found = caller.mem_search(json!({"query": query})).await.ok();
        assert_eq!(found["rows"][0]["id"], id, "{query}");
    }
    // A cut text says where it was cut.
    let record = caller.get("/v1/observations/1").await.ok();
    let kept = record["observation"]["narrative"]
        .as_str()
        .expect("a narrative");
    assert!(
        kept.len() <= 65_536 && kept.contains("…[cut "),
        "{}",
        kept.len()
    );
    let refused = caller.mem_search(json!({"query": "a".repeat(3_000)})).await;
    assert_eq!(refused.code(), "invalid_input");
    let nothing = caller
        .mem_search(json!({"query": "a".repeat(500)}))
        .await
        .ok();
    assert_eq!(nothing["reason"], "no_results");
}

#[rstest]
#[case(200)]
#[case(100_000)]
#[tokio::test]
async fn c029_json_nested_deep(#[case] depth: usize) {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    // As text, the form of the contract: stored.
    let text = serde_json::to_string(&nested).expect("a string");
    let answer = caller
        .post_text("/v1/events", tool_use(&text, "\"r1\""))
        .await
        .ok();
    assert_eq!(answer["items"][0]["status"], "stored");
    // As a value: that item alone is refused, with a reason.
    let reply = caller
        .post_text("/v1/events", tool_use(&nested, "\"r2\""))
        .await;
    assert_eq!(reply.status, 207, "{reply:?}");
    assert_eq!(reply.json()["items"][0]["pointer"], "/items/0/body/input");
    // In a work entry's field and in a field nobody knows.
    let event = format!(
        r#"{{"project":{{"key":"{PROJECT}"}},"x":{nested},"items":[
        {{"event_id":"{}","kind":"work_entry","body":{{"list":"l","fields":{{"a":{nested}}}}}}},
        {{"event_id":"{}","kind":"observation","y":{nested},"body":{{"title":"t"}}}}]}}"#,
        uuid::Uuid::now_v7(),
        uuid::Uuid::now_v7()
    );
    let reply = caller.post_text("/v1/events", event).await;
    assert_eq!(reply.status, 207, "{reply:?}");
    assert_eq!(reply.json()["items"][0]["code"], "invalid_field");
    assert_eq!(reply.json()["items"][1]["status"], "stored");
}

#[tokio::test]
async fn c030_very_long_values_are_refused_by_name_or_shortened() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let long: String = (0..9_600)
        .map(|n| char::from(b"0123456789abcdef"[n * 7 % 16]))
        .collect();
    let mut project = item("observation", json!({"title": "t"}));
    project["project"] = json!({"key": format!("name:{long}")});
    let mut session = item("observation", json!({"title": "t"}));
    session["session"]["id"] = json!(long);
    let path = format!("src/{long}/pool.rs");
    let reply = caller
        .events(vec![
            item("work_entry", json!({"list": long, "fields": {"task": "a"}})),
            project,
            session,
            item(
                "observation",
                json!({"title": "t", "files_modified": [path]}),
            ),
        ])
        .await;
    assert_eq!(reply.status, 207, "{reply:?}");
    let answer = reply.json();
    for (at, pointer, limit) in [
        (0, "/items/0/body/list", "200"),
        (1, "/items/1/project/key", "256"),
        (2, "/items/2/session/id", "256"),
    ] {
        assert_eq!(answer["items"][at]["pointer"], pointer);
        assert!(
            answer["items"][at]["detail"]
                .as_str()
                .expect("why")
                .contains(limit),
            "{answer}"
        );
    }
    let id = answer["items"][3]["id"].as_str().expect("stored");
    let record = caller.get(&format!("/v1/observations/{id}")).await.ok();
    let kept = record["observation"]["files_modified"][0]
        .as_str()
        .expect("a path");
    assert!(kept.len() <= 1_024 && kept.ends_with("pool.rs"), "{kept}");
}

#[tokio::test]
async fn c032_a_body_just_over_the_limit() {
    const MAX: usize = 2 * 1024 * 1024;
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let body = caller
        .batch(vec![item("observation", json!({"title": "t"}))])
        .to_string();
    for (size, accepted) in [(MAX, true), (MAX + 1, false), (3 * 1024 * 1024, false)] {
        let padded = format!("{body}{}", " ".repeat(size - body.len()));
        let reply = caller.post_text("/v1/events", padded.clone()).await;
        assert_eq!(reply.status.is_success(), accepted, "{size}");
        if !accepted {
            assert_eq!(reply.status, 413);
            assert_eq!(reply.code(), "body_too_large");
            assert!(reply.text.contains("2097152"), "{reply:?}");
            // Packed small it is as large once it is open.
            let packed = zstd::encode_all(padded.as_bytes(), 3).expect("packed");
            let request = caller.request(reqwest::Method::POST, "/v1/events");
            let reply = caller
                .send(request.header("Content-Encoding", "zstd").body(packed))
                .await;
            assert_eq!(
                (reply.status.as_u16(), reply.code().as_str()),
                (413, "body_too_large")
            );
        }
    }
}

#[rstest]
#[case::empty(b"".as_slice())]
#[case::cut_off(b"{\"items\":[".as_slice())]
#[case::not_utf8(b"{\"items\":[\"\xff\"]}".as_slice())]
#[case::two_values(b"{\"items\":[]}{}".as_slice())]
#[case::words(b"hello".as_slice())]
#[tokio::test]
async fn what_cannot_be_read_is_malformed(#[case] body: &'static [u8]) {
    let app = TestApp::start().await;
    let reply = app.owner().await.post_text("/v1/events", body).await;
    assert_eq!(
        (reply.status.as_u16(), reply.code().as_str()),
        (400, "malformed_body")
    );
}

#[rstest]
#[case(json!([]), 422)]
#[case(json!({"items": "x"}), 422)]
#[case(json!({"items": {}}), 422)]
#[case(json!({}), 422)]
#[case(json!({"items": [], "sent_at": "yesterday"}), 422)]
#[case(json!({"items": [null, 1, "x", [], {}, {"event_id": "x"}]}), 207)]
#[case(json!({"items": [{"event_id": "e2\r", "kind": "observation", "body": {"title": "t"}}]}), 207)]
#[case(json!({"items": [{"event_id": uuid::Uuid::now_v7(), "kind": "observation", "body": []}]}), 207)]
#[case(json!({"items": [{"event_id": uuid::Uuid::now_v7(), "kind": "tool_use", "body": {"tool": "x"}}]}), 207)]
#[case(json!({"items": [{"event_id": uuid::Uuid::now_v7(), "kind": "prompt", "at": "now", "body": {"text": "t"}}]}), 207)]
#[tokio::test]
async fn what_has_the_wrong_shape_is_refused_by_name(
    #[case] body: serde_json::Value,
    #[case] status: u16,
) {
    let app = TestApp::start().await;
    let reply = app.owner().await.post("/v1/events", body).await;
    assert_eq!(reply.status, status, "{reply:?}");
    if status == 422 {
        assert_eq!(reply.code(), "invalid_field");
    } else {
        let answer = reply.json();
        assert!(
            answer["items"]
                .as_array()
                .expect("items")
                .iter()
                .all(|i| i["status"] == "refused")
        );
    }
}

#[tokio::test]
async fn times_beyond_what_can_be_kept_are_refused_alone() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let dated = |kind, body, at| {
        let mut event = item(kind, body);
        event["at"] = json!(at);
        event
    };
    let entry = json!({"list": "l", "fields": {"task": "t"}});
    let reply = caller
        .events(vec![
            dated(
                "observation",
                json!({"title": "t"}),
                "-9999-01-01T00:00:00Z",
            ),
            dated("work_entry", entry.clone(), "-262143-01-01T00:00:00Z"),
            dated("work_entry", entry, "+262142-12-31T23:59:59Z"),
            dated("observation", json!({"title": "t"}), "1970-01-01T00:00:00Z"),
        ])
        .await;
    assert_eq!(reply.status, 207, "{reply:?}");
    let answer = reply.json();
    let statuses: Vec<_> = (0..4)
        .map(|at| answer["items"][at]["status"].clone())
        .collect();
    assert_eq!(statuses, ["refused", "refused", "stored", "stored"]);
    assert_eq!(answer["items"][1]["pointer"], "/items/1/at");
    for sent_at in ["-9999-01-01T00:00:00Z", "+262142-12-31T23:59:59Z"] {
        let mut batch = caller.batch(vec![item(
            "work_entry",
            json!({"list": "l", "fields": {"a": 1}}),
        )]);
        batch["sent_at"] = json!(sent_at);
        assert_eq!(
            caller.post("/v1/events", batch).await.status,
            200,
            "{sent_at}"
        );
    }
}

#[tokio::test]
async fn what_is_no_text_or_no_json_is_a_problem_document() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    caller.remember("t", "").await;
    for path in [
        "/v1/observations/%FF",
        "/v1/context?project=%00",
        "/v1/context?project=%FF",
    ] {
        assert_eq!(caller.get(path).await.code(), "not_found", "{path}");
    }
    let search = caller
        .mem_search(json!({"query": "t", "project": "\0"}))
        .await;
    assert_eq!(search.code(), "not_found");
    for header in ["%00", "%FF%FE", "%"] {
        let request = caller
            .clone()
            .nowhere()
            .request(reqwest::Method::GET, "/v1/context");
        let reply = caller.send(request.header("Cairn-Project", header)).await;
        assert_eq!(reply.status, 200, "{header}: {reply:?}");
    }
    for (name, value) in [("Content-Type", "text/plain"), ("Content-Encoding", "br")] {
        let request = caller
            .request(reqwest::Method::POST, "/v1/events")
            .body("{}");
        let reply = caller.send(request.header(name, value)).await;
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (400, "malformed_body")
        );
    }
}

#[tokio::test]
async fn more_than_500_items_are_refused_whole() {
    let app = TestApp::start().await;
    let caller = app.owner().await;
    let items = |count| {
        (0..count)
            .map(|_| item("observation", json!({"title": "t"})))
            .collect()
    };
    assert_eq!(caller.events(items(501)).await.code(), "invalid_field");
    let answer = caller.events(items(500)).await.ok();
    let last = &answer["items"][499];
    assert_eq!(
        (&last["status"], &last["id"]),
        (&json!("stored"), &json!("500"))
    );
}
