//! Projects over REST: listing, finding without making, renaming and merging.

use cairn_domain::scope::Role;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, redis_continuations};

/// The id of a project.
async fn id(caller: &Caller, name: &str) -> String {
    let found = caller
        .post("/v1/projects/resolve", json!({"name": name}))
        .await
        .ok();
    found["id"].as_str().expect("an id").to_owned()
}

async fn patch(caller: &Caller, id: &str, body: Value) -> crate::support::Reply {
    caller.patch(&format!("/v1/projects/{id}"), body).await
}

async fn three(app: &TestApp) -> Caller {
    let owner = app.owner().await;
    for name in ["a", "b", "c"] {
        let there = owner.clone().in_project(&format!("name:{name}"));
        there.remember(name, "").await;
    }
    owner
}

#[tokio::test]
async fn what_a_key_or_a_name_means_is_found_and_never_made() {
    let app = TestApp::start().await;
    let owner = three(&app).await;
    let ask = |body| owner.post("/v1/projects/resolve", body);
    let by_key = ask(json!({"key": "NAME:A", "name": "whatever"})).await.ok();
    assert_eq!(
        (&by_key["key"], &by_key["name"]),
        (&json!("name:a"), &json!("a"))
    );
    assert_eq!(ask(json!({"name": by_key["id"]})).await.ok(), by_key);
    assert_eq!(ask(json!({"name": "a"})).await.ok(), by_key);
    for body in [
        json!({"key": "name:d"}),
        json!({"name": "d"}),
        json!({"key": "a"}),
    ] {
        assert_eq!(ask(body).await.code(), "not_found");
    }
    assert_eq!(ask(json!({})).await.code(), "invalid_field");
    let listed = owner.get("/v1/projects").await.ok();
    assert_eq!(listed["items"].as_array().expect("items").len(), 3);
    let other = owner.clone().in_project("repo:a");
    let batch = json!({"project": {"key": "repo:a", "name": "a"}, "items": [
        crate::support::item("observation", json!({"title": "x"}))]});
    other.post("/v1/events", batch).await.ok();
    let ambiguous = ask(json!({"name": "a"})).await;
    assert_eq!(ambiguous.json()["candidates"], json!(["name:a", "repo:a"]));
    let limited = app.limited_to("name:b").await;
    let found = limited.post("/v1/projects/resolve", json!({"name": "a"}));
    assert_eq!(found.await.code(), "not_found");
    let seen = limited.get("/v1/projects").await.ok();
    assert_eq!(seen["items"][0]["key"], "name:b");
    assert_eq!(seen["items"].as_array().expect("items").len(), 1);
    assert_eq!(
        app.stranger().await.get("/v1/projects").await.ok()["items"],
        json!([])
    );
}

#[tokio::test]
async fn pages_of_projects_go_by_name() {
    let app = TestApp::start().await;
    let owner = three(&app).await;
    let mut names = Vec::new();
    let mut path = "/v1/projects?limit=2".to_owned();
    loop {
        let page = owner.get(&path).await.ok();
        for project in page["items"].as_array().expect("items") {
            names.push(project["name"].as_str().expect("a name").to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/projects?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_project_is_renamed_by_an_admin_and_shown_so_at_once() {
    let app = TestApp::start().await;
    let owner = three(&app).await;
    let a = id(&owner, "a").await;
    let here = owner.clone().in_project("name:a");
    assert!(
        here.get("/v1/context")
            .await
            .text
            .contains("# [a] recent context")
    );
    let limited = app.limited_to("name:a").await;
    let limited = limited.get("/v1/context").await;
    assert!(limited.text.contains("# [a] recent context"));
    let renamed = patch(&owner, &a, json!({"name": " anew "})).await.ok();
    assert_eq!(
        (&renamed["name"], &renamed["key"]),
        (&json!("anew"), &json!("name:a"))
    );
    assert!(
        here.get("/v1/context")
            .await
            .text
            .contains("# [anew] recent context")
    );
    assert_eq!(id(&owner, "anew").await, a);
    for (caller, id, body, code) in [
        (
            app.member().await,
            a.as_str(),
            json!({"name": "x"}),
            "insufficient_scope",
        ),
        (app.stranger().await, &a, json!({"name": "x"}), "not_found"),
        (
            app.limited_to("b").await,
            &a,
            json!({"name": "x"}),
            "not_found",
        ),
        (owner.clone(), "name:a", json!({"name": "x"}), "not_found"),
        (owner.clone(), &a, json!({}), "invalid_field"),
        (owner.clone(), &a, json!({"name": ""}), "invalid_field"),
        (
            owner.clone(),
            &a,
            json!({"name": "x".repeat(257)}),
            "invalid_field",
        ),
        (owner.clone(), &a, json!({"merge_into": "d"}), "not_found"),
        (
            owner.clone(),
            &a,
            json!({"merge_into": "*"}),
            "project_required",
        ),
    ] {
        let refused = patch(&caller, id, body.clone()).await;
        assert_eq!(refused.code(), code, "{id} {body}");
    }
}

#[tokio::test]
async fn what_is_merged_is_merged_once_and_into_no_alias() {
    let app = TestApp::start().await;
    let owner = three(&app).await;
    let (a, b, c) = (
        id(&owner, "a").await,
        id(&owner, "b").await,
        id(&owner, "c").await,
    );
    let into = |name: &str| json!({"merge_into": name});
    assert_eq!(patch(&owner, &a, into("a")).await.code(), "conflict");
    let merged = patch(&owner, &a, into("name:b")).await.ok();
    assert_eq!(merged["merged_into"], "name:b");
    for (id, target) in [(&a, "b"), (&a, "c"), (&b, "name:a"), (&c, "name:a")] {
        let refused = patch(&owner, id, into(target)).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (409, "conflict")
        );
    }
    // A name that was refused was not changed on the way.
    let both = json!({"name": "other", "merge_into": "name:a"});
    assert_eq!(patch(&owner, &c, both).await.code(), "conflict");
    let listed = owner.get("/v1/projects").await.ok();
    let listed: Vec<_> = listed["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|p| (p["name"].clone(), p["aliases"].clone()))
        .collect();
    assert_eq!(
        listed,
        [(json!("b"), json!(["name:a"])), (json!("c"), json!([]))]
    );
    assert_eq!(
        id(&owner, "a").await,
        b,
        "an alias means what it was merged into"
    );
    let admin = app.newcomer("abe", Role::Admin).await;
    patch(&admin, &b, into("c")).await.ok();
    let listed = owner.get("/v1/projects").await.ok();
    assert_eq!(listed["items"][0]["aliases"], json!(["name:a", "name:b"]));
}

#[tokio::test]
async fn two_merges_that_cross_on_two_replicas_leave_one() {
    let app = TestApp::start().await;
    let there = app.beside(redis_continuations()).await;
    let owner = three(&app).await;
    let (a, b) = (id(&owner, "a").await, id(&owner, "b").await);
    let other = owner.clone().at(&there);
    let (one, two) = tokio::join!(
        patch(&owner, &a, json!({"merge_into": "name:b"})),
        patch(&other, &b, json!({"merge_into": "name:a"})),
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
}
