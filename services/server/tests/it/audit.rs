//! The audit log over REST: each act of management has its line, and pages walk them all.

use cairn_domain::scope::Role;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, item};

fn actions(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|line| line["action"].as_str().expect("an action").to_owned())
        .collect()
}

#[tokio::test]
async fn every_act_of_management_has_its_line() {
    let app = TestApp::start().await;
    let (owner, ben) = (app.owner().await, app.member().await);
    let call = json!({"tool": "Bash", "input": "{}", "output": "\"x\""});
    let items = vec![
        item("observation", json!({"title": "by ben"})),
        item("tool_use", call),
    ];
    ben.events(items).await.ok();
    let private = json!({"title": "mine", "visibility": "private"});
    ben.post("/v1/observations", private).await.ok();
    let begun = owner.get("/v1/audit").await.ok()["items"]
        .as_array()
        .expect("items")
        .len();

    ben.patch("/v1/observations/2", json!({"visibility": "team"}))
        .await
        .ok();
    owner
        .post("/v1/tool-uses/batch", json!({"ids": ["T1"]}))
        .await
        .ok();
    owner
        .search(&[("query", "x"), ("kind", "tool_use")])
        .await
        .ok();
    for path in ["/v1/observations/1", "/v1/tool-uses/T1"] {
        assert_eq!(owner.delete(path).await.status, 204);
        assert_eq!(owner.delete(path).await.status, 204, "again");
    }
    assert_eq!(
        ben.delete("/v1/observations/2").await.status,
        204,
        "one's own"
    );
    owner
        .post("/v1/members", json!({"handle": "lin"}))
        .await
        .ok();
    owner
        .patch("/v1/members/lin", json!({"role": "reader"}))
        .await
        .ok();
    owner
        .patch("/v1/members/lin", json!({"role": "reader"}))
        .await
        .ok();
    let made = owner
        .post("/v1/keys", json!({"name": "x", "member": "lin"}))
        .await
        .ok();
    let id = made["id"].as_str().expect("an id");
    for _ in 0..2 {
        assert_eq!(owner.delete(&format!("/v1/keys/{id}")).await.status, 204);
    }
    assert_eq!(owner.delete("/v1/members/lin").await.status, 204);
    owner
        .patch("/v1/tenant", json!({"tools": "legacy"}))
        .await
        .ok();
    assert_eq!(
        owner
            .post("/v1/cache/context/clear", json!({}))
            .await
            .status,
        204
    );
    let project = owner.get("/v1/projects").await.ok()["items"][0]["id"].clone();
    let project = format!("/v1/projects/{}", project.as_str().expect("an id"));
    owner.patch(&project, json!({"name": "anew"})).await.ok();
    owner.clone().in_project("name:b").remember("x", "").await;
    owner.patch(&project, json!({"merge_into": "b"})).await.ok();
    // What was refused was not done.
    assert_eq!(owner.delete("/v1/members/ada").await.code(), "last_owner");
    assert_eq!(
        ben.delete("/v1/members/ada").await.code(),
        "insufficient_scope"
    );

    let mut listed = owner.get("/v1/audit").await.ok();
    listed["items"].as_array_mut().expect("items").reverse();
    assert_eq!(
        actions(&listed)[begun..],
        [
            "record.promote",
            "tool_use.read",
            "tool_use.search",
            "record.delete",
            "tool_use.delete",
            "member.add",
            "member.change",
            "key.create",
            "key.revoke",
            "member.remove",
            "tenant.change",
            "cache.clear",
            "project.rename",
            "project.merge",
        ]
    );
    let line = |nth: usize| {
        let line = &listed["items"][begun + nth];
        (
            line["actor"].clone(),
            line["target"].clone(),
            line["detail"].clone(),
        )
    };
    assert_eq!(line(0), (json!("ben"), json!("2"), json!({})));
    assert_eq!(
        line(3),
        (json!("ada"), json!("1"), json!({"author": "ben"}))
    );
    assert_eq!(
        line(6),
        (
            json!("ada"),
            json!("lin"),
            json!({"role": "reader", "was": "member"})
        )
    );
    assert_eq!(line(7).0, "ada", "made by the admin, not by whose it is");
    assert_eq!(
        line(13),
        (
            json!("ada"),
            json!("name:alpha-app"),
            json!({"into": "name:b"})
        )
    );
    assert!(
        !listed
            .to_string()
            .contains(made["key"].as_str().expect("a key"))
    );
}

async fn walk(caller: &Caller, filter: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut path = format!("/v1/audit?limit=3{filter}");
    loop {
        let page = caller.get(&path).await.ok();
        lines.extend(page["items"].as_array().expect("items").clone());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/audit?limit=3{filter}&cursor={cursor}"),
            None => return lines,
        }
    }
}

#[tokio::test]
async fn pages_walk_all_lines_once_and_filters_narrow_them() {
    let app = TestApp::standing_still(None).await;
    let owner = app.owner().await;
    let admin = app.newcomer("abe", Role::Admin).await;
    for n in 0..7 {
        let caller = if n % 2 == 0 { &owner } else { &admin };
        let body = json!({"handle": format!("m{n}")});
        assert_eq!(caller.post("/v1/members", body).await.status, 201);
    }
    let all = walk(&owner, "").await;
    let mut once = all.clone();
    once.dedup();
    assert_eq!(
        (once.len(), all.len()),
        (all.len(), owner_lines(&app).await)
    );
    let added = walk(&owner, "&action=member.add").await;
    let targets: Vec<&str> = added
        .iter()
        .map(|line| line["target"].as_str().expect("x"))
        .collect();
    // Abe came by another clock.
    let by_clock: Vec<&str> = targets.into_iter().filter(|t| *t != "abe").collect();
    assert_eq!(by_clock, ["m6", "m5", "m4", "m3", "m2", "m1", "m0", "ben"]);
    assert_eq!(walk(&owner, "&action=member.add&actor=abe").await.len(), 3);
    assert!(walk(&owner, "&actor=abe").await.len() >= 3);
    assert_eq!(walk(&owner, "&actor=nobody").await, [] as [Value; 0]);
    assert_eq!(walk(&owner, "&from=2999-01-01").await, [] as [Value; 0]);
    assert_eq!(walk(&owner, "&to=1999-01-01").await, [] as [Value; 0]);
    let first = owner.get("/v1/audit?limit=3").await.ok();
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    for path in [
        "/v1/audit?action=key.create",
        "/v1/members?limit=3",
        "/v1/audit?from=2020-01-01",
    ] {
        let join = format!("{path}&cursor={cursor}");
        assert_eq!(owner.get(&join).await.code(), "invalid_cursor", "{path}");
    }
    let theirs = app.stranger().await;
    let theirs = walk(&theirs, "").await;
    assert!(
        theirs.iter().all(|line| line["target"] != "m0"),
        "{theirs:?}"
    );
}

async fn owner_lines(app: &TestApp) -> usize {
    let count: i64 = sqlx::query_scalar("select count(*) from audit where tenant_id = $1")
        .bind(app.db.twins.0.tenant.key())
        .fetch_one(&mut app.db.admin().await)
        .await
        .expect("a count");
    usize::try_from(count).expect("not below zero")
}
