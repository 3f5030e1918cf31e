//! Members over REST: who may make whom, what removal ends, and that an owner stays.

use cairn_domain::scope::{Role, Scope};
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, redis_continuations};

fn handles(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|member| member["handle"].as_str().expect("a handle"))
        .collect()
}

#[tokio::test]
async fn members_are_added_listed_changed_and_removed() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let body = json!({"handle": "lin", "email": "lin@example.com", "role": "admin"});
    let added = owner.post("/v1/members", body.clone()).await;
    assert_eq!(added.status, 201, "{added:?}");
    let added = added.json();
    assert_eq!(
        (&added["handle"], &added["email"], &added["role"]),
        (&json!("lin"), &json!("lin@example.com"), &json!("admin"))
    );
    assert!(added.get("key").is_none() && added["joined_at"].is_string());
    let again = owner.post("/v1/members", body).await;
    assert_eq!(
        (again.status.as_u16(), again.code().as_str()),
        (409, "conflict")
    );
    let first = owner.get("/v1/members?limit=2").await.ok();
    assert_eq!(handles(&first), ["ada", "ben"]);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let next = format!("/v1/members?limit=2&cursor={cursor}");
    let second = owner.get(&next).await.ok();
    assert_eq!(
        (handles(&second), &second["next_cursor"]),
        (vec!["lin"], &Value::Null)
    );
    // A cursor is of its list and its caller.
    for path in ["/v1/keys", "/v1/projects"] {
        let refused = owner.get(&format!("{path}?cursor={cursor}")).await;
        assert_eq!(refused.code(), "invalid_cursor", "{path}");
    }
    assert_eq!(
        app.stranger().await.get(&next).await.code(),
        "invalid_cursor"
    );
    let changed = owner
        .patch("/v1/members/lin", json!({"role": "reader", "email": null}))
        .await
        .ok();
    assert_eq!(
        (&changed["role"], &changed["email"]),
        (&json!("reader"), &Value::Null)
    );
    assert_eq!(owner.delete("/v1/members/lin").await.status, 204);
    for reply in [
        owner.delete("/v1/members/lin").await,
        owner
            .patch("/v1/members/lin", json!({"role": "member"}))
            .await,
    ] {
        assert_eq!(reply.code(), "not_found");
    }
    for (body, at) in [
        (json!({"handle": "No One"}), "/handle"),
        (json!({"handle": "x", "role": "king"}), "/role"),
        (json!({"handle": "x", "email": "x"}), "/email"),
        (json!({"handle": 7}), "/handle"),
    ] {
        let refused = owner.post("/v1/members", body).await;
        assert_eq!(refused.code(), "invalid_field");
        assert_eq!(refused.json()["errors"][0]["pointer"], at);
    }
}

#[tokio::test]
async fn owners_are_made_and_unmade_by_owners_alone() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let admin = app.newcomer("abe", Role::Admin).await;
    let service = app.service(Scope::ALL.into_iter().collect()).await;
    let lesser = app.owner_with(&[Scope::TenantAdmin]).await;
    for caller in [&admin, &service, &lesser] {
        for reply in [
            caller
                .post("/v1/members", json!({"handle": "boss", "role": "owner"}))
                .await,
            caller
                .patch("/v1/members/ben", json!({"role": "owner"}))
                .await,
            caller
                .patch("/v1/members/ada", json!({"role": "admin"}))
                .await,
            caller
                .patch("/v1/members/ada", json!({"email": "eve@example.com"}))
                .await,
            caller.delete("/v1/members/ada").await,
        ] {
            assert_eq!(reply.code(), "insufficient_scope", "{reply:?}");
            assert_eq!(reply.json()["scopes"], json!(["tenant:own"]));
        }
    }
    for reply in [
        owner.delete("/v1/members/ada").await,
        owner
            .patch("/v1/members/ada", json!({"role": "member"}))
            .await,
    ] {
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (409, "last_owner")
        );
    }
    owner
        .patch("/v1/members/ben", json!({"role": "owner"}))
        .await
        .ok();
    owner
        .patch("/v1/members/ada", json!({"role": "member"}))
        .await
        .ok();
    // What it may is read anew at once.
    assert_eq!(owner.get("/v1/members").await.code(), "insufficient_scope");
}

#[tokio::test]
async fn of_two_owners_who_remove_each_other_at_once_one_stays() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let ada = app.owner().await;
    let oda = app.newcomer("oda", Role::Owner).await.at(&other);
    let (one, two) = tokio::join!(ada.delete("/v1/members/oda"), oda.delete("/v1/members/ada"));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses[0], 204, "{one:?} {two:?}");
    // The second one finds itself the last owner, or its caller removed.
    assert!([401, 409].contains(&statuses[1]), "{one:?} {two:?}");
    let owners: i64 = sqlx::query_scalar(
        "select count(*) from members where role = 'owner' and removed_at is null
         and tenant_id = $1",
    )
    .bind(app.db.twins.0.tenant.key())
    .fetch_one(&mut app.db.admin().await)
    .await
    .expect("a count");
    assert_eq!(owners, 1);
}

#[tokio::test]
async fn removal_ends_every_key_and_a_handle_given_anew_revives_nothing() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let (owner, ben) = (app.owner().await, app.member().await);
    let shared = ben.remember("shared by ben", "").await;
    let private = json!({"title": "kept by ben", "visibility": "private"});
    let private = ben.post("/v1/observations", private).await.ok();
    let private = private["id"].as_str().expect("an id").to_owned();
    let second = ben.post("/v1/keys", json!({"name": "second"})).await.ok();
    let second = Caller::new(&app.base, second["key"].as_str());
    let (here, there) = (ben.clone(), second.clone().at(&other));
    assert_eq!(there.get("/v1/me").await.status, 200);
    assert_eq!(owner.delete("/v1/members/ben").await.status, 204);
    // At once on the replica that did it, and elsewhere as soon as it asks.
    assert_eq!(here.get("/v1/me").await.code(), "credential_revoked");
    assert_eq!(second.get("/v1/me").await.code(), "credential_revoked");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while there.get("/v1/me").await.status == 200 {
        assert!(std::time::Instant::now() < deadline, "let in for 10 s");
    }
    assert_eq!(
        owner
            .get(&format!("/v1/observations/{shared}"))
            .await
            .status,
        200
    );
    let hidden = format!("/v1/observations/{private}");
    assert_eq!(owner.get(&hidden).await.code(), "not_found");

    let back = json!({"handle": "ben", "role": "member"});
    assert_eq!(owner.post("/v1/members", back).await.status, 201);
    assert_eq!(here.get("/v1/me").await.code(), "credential_revoked");
    let key = owner
        .post("/v1/keys", json!({"name": "new", "member": "ben"}))
        .await
        .ok();
    let anew = Caller::new(&app.base, key["key"].as_str());
    assert_eq!(anew.get("/v1/me").await.ok()["handle"], "ben");
    assert_eq!(anew.get(&hidden).await.code(), "not_found");
    assert_eq!(
        anew.get(&format!("/v1/observations/{shared}")).await.status,
        200
    );
}

#[tokio::test]
async fn a_quota_of_members_holds_even_for_two_at_once() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner
        .patch("/v1/tenant", json!({"quotas": {"members": 3}}))
        .await
        .ok();
    let add = |handle: &str| owner.post("/v1/members", json!({"handle": handle}));
    let (one, two) = tokio::join!(add("lin"), add("dan"));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403]);
    assert_eq!(add("eve").await.code(), "quota_exceeded");
}

#[tokio::test]
async fn a_credential_of_one_project_manages_no_tenant() {
    let app = TestApp::start().await;
    app.owner().await.remember("x", "").await;
    let limited = app.limited_to("alpha-app").await;
    for reply in [
        limited.get("/v1/members").await,
        limited.post("/v1/members", json!({"handle": "lin"})).await,
        limited.get("/v1/audit").await,
        limited.patch("/v1/tenant", json!({"tools": "core"})).await,
    ] {
        assert_eq!(reply.code(), "insufficient_scope");
        assert!(reply.text.contains("without a project limit"), "{reply:?}");
    }
}
