//! Keys over REST: none allows more than who made it and whose it is, and none is shown twice.

use cairn_domain::scope::{Role, Scope};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, redis_continuations};

async fn make(caller: &Caller, body: Value) -> (Caller, Value) {
    let made = caller.post("/v1/keys", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.headers["cache-control"], "no-store");
    let made = made.json();
    let key = Caller::new(caller.base(), made["key"].as_str());
    (key, made)
}

fn ids(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|key| key["id"].as_str().expect("an id"))
        .collect()
}

#[tokio::test]
async fn a_key_is_shown_once_and_ends_when_it_says() {
    let app = TestApp::start().await;
    let ben = app.member().await;
    let (key, made) = make(&ben, json!({"name": "laptop"})).await;
    let me = key.get("/v1/me").await.ok();
    assert_eq!(me["handle"], "ben");
    assert_eq!(made["scopes"], me["scopes"]);
    let moment = |value: &Value| -> DateTime<Utc> {
        value.as_str().expect("a moment").parse().expect("a moment")
    };
    let lasts = moment(&made["expires_at"]) - moment(&made["created_at"]);
    assert_eq!(lasts, TimeDelta::days(90));
    let (_, year) = make(&ben, json!({"name": "x", "expires_in_days": 365})).await;
    let lasts = moment(&year["expires_at"]) - moment(&year["created_at"]);
    assert_eq!(lasts, TimeDelta::days(365));
    let listed = ben.get("/v1/keys").await;
    assert!(!listed.text.contains(key.key()), "{listed:?}");
    let listed = listed.json();
    assert!(ids(&listed).contains(&key.key_id()));
    let admin = app.owner().await;
    let shown = loop {
        let listed = admin.get("/v1/keys").await.ok();
        let items = listed["items"].as_array().expect("items").clone();
        let mut items = items.into_iter();
        let shown = items
            .find(|item| item["id"] == key.key_id())
            .expect("listed");
        // The note of its use is made beside the call.
        if shown["last_used_at"].is_string() {
            break shown;
        }
    };
    let used = shown["last_used_at"].as_str().expect("a moment");
    assert!(used.ends_with(":00:00.000Z"), "{used}");
    for (body, at) in [
        (
            json!({"name": "x", "expires_in_days": 366}),
            "/expires_in_days",
        ),
        (
            json!({"name": "x", "expires_in_days": 0}),
            "/expires_in_days",
        ),
        (json!({"name": "", "scopes": []}), "/name"),
        (json!({"name": "x", "scopes": ["all"]}), "/scopes/0"),
        (
            json!({"name": "x", "service": true, "member": "ben"}),
            "/member",
        ),
    ] {
        let refused = ben.post("/v1/keys", body).await;
        assert_eq!(refused.json()["errors"][0]["pointer"], at, "{refused:?}");
    }
}

#[tokio::test]
async fn a_key_carries_no_more_than_its_maker_and_its_owner() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let few = app
        .owner_with(&[Scope::MemoryRead, Scope::TenantAdmin])
        .await;
    let refused = few
        .post("/v1/keys", json!({"name": "x", "scopes": ["memory:write"]}))
        .await;
    assert_eq!(refused.code(), "insufficient_scope");
    assert_eq!(refused.json()["scopes"], json!(["memory:write"]));
    // Left out, administration stays out, even where it may be given.
    let (_, made) = make(&few, json!({"name": "x"})).await;
    assert_eq!(made["scopes"], json!(["memory:read"]));
    let (_, made) = make(&owner, json!({"name": "x", "scopes": ["tenant:own"]})).await;
    assert_eq!(made["scopes"], json!(["tenant:own"]));
    let bare = app.owner_with(&[Scope::TenantAdmin]).await;
    let refused = bare.post("/v1/keys", json!({"name": "x"})).await;
    assert_eq!(refused.json()["errors"][0]["pointer"], "/scopes");
    // Nobody has more than their role, whoever makes the key.
    let body = json!({"name": "x", "member": "ben", "scopes": ["tenant:admin"]});
    let refused = owner.post("/v1/keys", body).await;
    assert_eq!(refused.json()["errors"][0]["pointer"], "/scopes");
    let body = json!({"name": "x", "service": true, "scopes": ["tenant:own"]});
    let refused = owner.post("/v1/keys", body).await;
    assert_eq!(refused.json()["errors"][0]["pointer"], "/scopes");
    let reader = app.newcomer("rae", Role::Reader).await;
    let (key, made) = make(&reader, json!({"name": "x"})).await;
    assert_eq!(made["scopes"], json!(["memory:read"]));
    assert_eq!(key.get("/v1/me").await.ok()["handle"], "rae");
}

#[tokio::test]
async fn keys_of_others_and_of_the_tenant_are_an_admins() {
    let app = TestApp::start().await;
    let (owner, ben) = (app.owner().await, app.member().await);
    let admin = app.newcomer("abe", Role::Admin).await;
    for body in [
        json!({"name": "ci", "service": true}),
        json!({"name": "x", "member": "ada"}),
    ] {
        assert_eq!(
            ben.post("/v1/keys", body).await.code(),
            "insufficient_scope"
        );
    }
    // Whoever has an owner's key is one.
    let refused = admin
        .post("/v1/keys", json!({"name": "x", "member": "ada"}))
        .await;
    assert_eq!(refused.json()["scopes"], json!(["tenant:own"]));
    let unknown = admin
        .post("/v1/keys", json!({"name": "x", "member": "nobody"}))
        .await;
    assert_eq!(unknown.code(), "not_found");
    let (ci, made) = make(&admin, json!({"name": "ci", "service": true})).await;
    let name = format!("key:{}", ci.key_id());
    assert_eq!(
        (&made["owner"], &made["service"]),
        (&json!(name), &json!(true))
    );
    let ci = ci.in_project("name:alpha-app");
    ci.remember("built", "").await;
    let (bens, _) = make(&admin, json!({"name": "x", "member": "ben"})).await;
    assert_eq!(bens.get("/v1/me").await.ok()["handle"], "ben");
    // Ben sees and ends his own alone; another's looks like none at all.
    let listed = ben.get("/v1/keys").await.ok();
    assert_eq!(ids(&listed), [bens.key_id(), ben.key_id()]);
    let others = [owner.key_id(), ci.key_id(), "nosuchkey234"];
    let mut told = Vec::new();
    for id in others {
        let mut reply = ben.delete(&format!("/v1/keys/{id}")).await.json();
        reply["instance"].take();
        told.push(reply);
    }
    assert!(told.iter().all(|reply| *reply == told[2]), "{told:?}");
    assert_eq!(told[0]["code"], "not_found");
    assert_eq!(owner.get("/v1/me").await.status, 200);
    // Only an owner of the same tenant is an admin of it.
    let path = format!("/v1/keys/{}", ci.key_id());
    let strange = app.stranger().await.delete(&path).await;
    assert_eq!(strange.code(), "not_found");
    for _ in 0..2 {
        let ended = admin.delete(&format!("/v1/keys/{}", ci.key_id())).await;
        assert_eq!(ended.status, 204);
    }
    assert_eq!(ci.get("/v1/me").await.code(), "credential_revoked");
    let listed = admin.get("/v1/keys").await.ok();
    assert!(!ids(&listed).contains(&ci.key_id()));
    assert_eq!(
        ben.delete(&format!("/v1/keys/{}", ben.key_id()))
            .await
            .status,
        204
    );
    assert_eq!(ben.get("/v1/me").await.code(), "credential_revoked");
}

#[tokio::test]
async fn a_limited_key_makes_and_sees_keys_of_its_project_alone() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("x", "").await;
    owner
        .clone()
        .in_project("name:beta-app")
        .remember("y", "")
        .await;
    let limited = app.limited_to("alpha-app").await;
    let (key, made) = make(&limited, json!({"name": "x"})).await;
    assert_eq!(made["project"], "name:alpha-app");
    assert_eq!(key.get("/v1/me").await.ok()["project"], "name:alpha-app");
    let (_, made) = make(
        &limited,
        json!({"name": "x", "project": "*", "service": true}),
    )
    .await;
    assert_eq!(made["project"], "name:alpha-app");
    let beyond = limited
        .post("/v1/keys", json!({"name": "x", "project": "beta-app"}))
        .await;
    assert_eq!(beyond.code(), "not_found");
    let (beta, _) = make(&owner, json!({"name": "x", "project": "beta-app"})).await;
    let listed = limited.get("/v1/keys").await.ok();
    for id in [beta.key_id(), owner.key_id()] {
        assert!(!ids(&listed).contains(&id));
        let refused = limited.delete(&format!("/v1/keys/{id}")).await;
        assert_eq!(refused.code(), "not_found");
    }
    assert!(ids(&listed).contains(&key.key_id()));
    assert_eq!(
        limited
            .delete(&format!("/v1/keys/{}", key.key_id()))
            .await
            .status,
        204
    );
    let unknown = owner
        .post("/v1/keys", json!({"name": "x", "project": "nowhere"}))
        .await;
    assert_eq!(unknown.code(), "not_found");
}

#[tokio::test]
async fn a_revoked_key_ends_on_every_replica() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let owner = app.owner().await;
    let (key, _) = make(&owner, json!({"name": "x"})).await;
    let there = key.clone().at(&other);
    assert_eq!(there.get("/v1/me").await.status, 200);
    assert_eq!(
        owner
            .delete(&format!("/v1/keys/{}", key.key_id()))
            .await
            .status,
        204
    );
    assert_eq!(key.get("/v1/me").await.code(), "credential_revoked");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while there.get("/v1/me").await.status == 200 {
        assert!(std::time::Instant::now() < deadline, "let in for 10 s");
    }
}

#[tokio::test]
async fn what_a_service_key_makes_ends_with_it() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let scopes = [Scope::MemoryRead, Scope::TenantAdmin];
    let ci = app.service(scopes.into_iter().collect()).await;
    let ends = ci.get("/v1/me").await.ok()["expires_at"].clone();
    let body = json!({"name": "x", "service": true, "expires_in_days": 365,
        "scopes": ["memory:read", "tenant:admin"]});
    let (child, made) = make(&ci, body.clone()).await;
    assert_eq!(made["expires_at"], ends);
    let (grandchild, made) = make(&child, body).await;
    assert_eq!(made["expires_at"], ends);
    // One that ends sooner does.
    let for_ben = json!({"name": "x", "member": "ben", "expires_in_days": 1});
    let (brief, made) = make(&grandchild, for_ben).await;
    assert!(made["expires_at"].as_str() < ends.as_str(), "{made}");
    let all = [&ci, &child, &grandchild, &brief];
    for key in all {
        assert_eq!(key.get("/v1/me").await.status, 200);
    }
    // What is signed in with a code would not end with it.
    let code = ci.post("/v1/members/ben/code", json!({})).await;
    assert_eq!(code.code(), "insufficient_scope");
    // A key of a member's own is theirs, with whatever key it was made.
    let mine = app.owner().await;
    let (free, made) = make(&mine, json!({"name": "x", "expires_in_days": 365})).await;
    assert!(made["expires_at"].as_str() > ends.as_str(), "{made}");
    for key in [&mine, &ci] {
        let path = format!("/v1/keys/{}", key.key_id());
        assert_eq!(owner.delete(&path).await.status, 204);
    }
    assert_eq!(free.get("/v1/me").await.status, 200);
    for key in all {
        assert_eq!(key.get("/v1/me").await.code(), "credential_revoked");
    }
    let mut told: Vec<String> =
        sqlx::query_scalar("select target from audit where action = 'key.revoke'")
            .fetch_all(&mut app.db.admin().await)
            .await
            .expect("lines");
    let mut ended: Vec<&str> = [&mine]
        .into_iter()
        .chain(all)
        .map(|key| key.key_id())
        .collect();
    told.sort_unstable();
    ended.sort_unstable();
    assert_eq!(told, ended);
}
