//! Grants: who sees them, who ends them.

use cairn_domain::scope::Role;
use serde_json::{Value, json};

use super::{LetIn, post_form, start};
use crate::support::{Caller, TestApp, forged};

fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[tokio::test]
async fn each_sees_their_own_and_an_admin_everybodys() {
    let app = TestApp::start().await;
    let (bens, adas) = (
        LetIn::by(&app, "ben", &[]).await,
        LetIn::by(&app, "ada", &[]).await,
    );
    let (ben, ada) = (bens.caller(&app.base), app.owner().await);
    let list = ben.get("/v1/grants").await.ok();
    assert_eq!(ids(&list).len(), 1);
    let one = &list["items"][0];
    assert_eq!(
        (one["member"].as_str(), one["client"].as_str()),
        (Some("ben"), Some("Probe"))
    );
    assert_eq!(one["current"], true);
    assert_eq!(one["scopes"].as_array().expect("scopes").len(), 4);
    for others in ["/v1/grants?member=*", "/v1/grants?member=ada"] {
        assert_eq!(
            ben.get(others).await.code(),
            "insufficient_scope",
            "{others}"
        );
    }
    assert_eq!(
        ids(&ben.get("/v1/grants?member=ben").await.ok()),
        ids(&list)
    );
    let all = ada.get("/v1/grants?member=*").await.ok();
    assert_eq!(ids(&all).len(), 2);
    assert_eq!(
        ids(&ada.get("/v1/grants?member=ben").await.ok()),
        ids(&list)
    );
    // Page by page.
    let first = ada.get("/v1/grants?member=*&limit=1").await.ok();
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let second = ada
        .get(&format!("/v1/grants?member=*&limit=1&cursor={cursor}"))
        .await
        .ok();
    assert_eq!([ids(&first), ids(&second)].concat(), ids(&all));
    assert!(second["next_cursor"].is_null());
    let forged = ada.get(&format!("/v1/grants?cursor={cursor}")).await;
    assert_eq!(forged.code(), "invalid_cursor");
    assert_eq!(
        ids(&app.stranger().await.get("/v1/grants?member=*").await.ok()).len(),
        0
    );
    drop(adas);
}

#[tokio::test]
async fn a_grant_is_ended_by_its_member_or_an_admin() {
    let app = TestApp::start().await;
    let (bens, adas) = (
        LetIn::by(&app, "ben", &[]).await,
        LetIn::by(&app, "ada", &[]).await,
    );
    let ben = bens.caller(&app.base);
    let bens_id = ids(&ben.get("/v1/grants").await.ok()).remove(0);
    let adas_id = ids(&adas.caller(&app.base).get("/v1/grants").await.ok()).remove(0);
    let path = |id: &str| format!("/v1/grants/{id}");
    for nobody in [
        path(&adas_id),
        path("nonsense"),
        path(&uuid::Uuid::now_v7().to_string()),
    ] {
        assert_eq!(ben.delete(&nobody).await.code(), "not_found", "{nobody}");
    }
    assert_eq!(
        app.stranger().await.delete(&path(&bens_id)).await.code(),
        "not_found"
    );
    let ada = app.owner().await;
    for _ in 0..2 {
        assert_eq!(ada.delete(&path(&bens_id)).await.status, 204);
    }
    assert_eq!(ben.get("/v1/me").await.code(), "credential_revoked");
    assert_eq!(
        adas.caller(&app.base).delete(&path(&adas_id)).await.status,
        204
    );
    let lines: Vec<String> = sqlx::query_scalar(
        "select action from audit where action like 'grant.%' order by audit_id",
    )
    .fetch_all(&mut app.db.admin().await)
    .await
    .expect("lines");
    assert_eq!(
        lines,
        [
            "grant.create",
            "grant.create",
            "grant.revoke",
            "grant.revoke"
        ]
    );
}

#[tokio::test]
async fn a_program_gives_back_what_it_was_given() {
    let app = TestApp::start().await;
    for which in ["access", "refresh"] {
        let let_in = LetIn::by(&app, "ben", &[]).await;
        let token = if which == "access" {
            &let_in.access
        } else {
            &let_in.refresh
        };
        let done = post_form(&app.base, "/oauth/revoke", &[("token", token)]).await;
        assert_eq!(done.status, 200, "{which}");
        let caller = let_in.caller(&app.base);
        assert_eq!(
            caller.get("/v1/me").await.code(),
            "credential_revoked",
            "{which}"
        );
    }
    // Nobody is told whether there was anything.
    let good = LetIn::by(&app, "ben", &[]).await;
    let forged = forged(&good.refresh);
    for other in ["unknown", forged.as_str()] {
        let done = post_form(&app.base, "/oauth/revoke", &[("token", other)]).await;
        assert_eq!(done.status, 200, "{other}");
    }
    assert_eq!(good.caller(&app.base).get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn a_key_that_a_program_makes_ends_with_its_grant_however_that_ends() {
    let (app, hands) = start().await;
    let owner = app.owner().await;
    for (handle, way) in [
        ("abe", "by an admin"),
        ("bea", "given back"),
        ("cem", "reused"),
        ("dan", "removed"),
    ] {
        app.newcomer(handle, Role::Admin).await;
        let asked = [("scope", "memory:read tenant:admin")];
        let let_in = LetIn::by(&app, handle, &asked).await;
        let program = let_in.caller(&app.base);
        let ends = program.get("/v1/me").await.ok()["expires_at"].clone();
        let body = json!({"name": way, "service": true, "expires_in_days": 365,
            "scopes": ["memory:read", "tenant:admin"]});
        let made = program.post("/v1/keys", body.clone()).await.ok();
        // A grant that is not used ends after thirty days.
        assert_eq!(made["expires_at"], ends, "{way}");
        let key = Caller::new(&app.base, made["key"].as_str());
        let made = key.post("/v1/keys", body).await.ok();
        let child = Caller::new(&app.base, made["key"].as_str());
        assert_eq!(child.get("/v1/me").await.status, 200, "{way}");
        match way {
            "by an admin" => {
                let id = ids(&program.get("/v1/grants").await.ok()).remove(0);
                let done = owner.delete(&format!("/v1/grants/{id}")).await;
                assert_eq!(done.status, 204);
            }
            "given back" => {
                let token = [("token", let_in.refresh.as_str())];
                post_form(&app.base, "/oauth/revoke", &token).await;
            }
            "reused" => {
                let_in.refresh_with(&app.base, &let_in.refresh).await.ok();
                hands.forward(31);
                let again = let_in.refresh_with(&app.base, &let_in.refresh).await;
                assert_eq!(again.status, 400);
            }
            _ => {
                let done = owner.delete(&format!("/v1/members/{handle}")).await;
                assert_eq!(done.status, 204);
            }
        }
        for key in [&key, &child] {
            assert_eq!(
                key.get("/v1/me").await.code(),
                "credential_revoked",
                "{way}"
            );
            let told: i64 = sqlx::query_scalar(
                "select count(*) from audit where action = 'key.revoke' and target = $1",
            )
            .bind(key.key_id())
            .fetch_one(&mut app.db.admin().await)
            .await
            .expect("a count");
            assert_eq!(told, 1, "{way}");
        }
    }
}
