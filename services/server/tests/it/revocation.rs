//! Rights that end: on every replica, for what is asked and for what is open.

use std::process::Command;
use std::time::Duration;

use cairn_domain::scope::Scope;
use cairn_server::admin;
use cairn_store::test_util::{TestDb, shared_redis_url};
use rstest::rstest;
use serde_json::json;

use crate::support::process::Replica;
use crate::support::stream::Stream;
use crate::support::{Caller, PROJECT, TestApp, new_owner_key, soon};

/// The time that the contract gives a revocation.
const LIMIT: Duration = Duration::from_secs(10);

fn command(db: &TestDb, redis: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cairn-server"))
        .args(arguments)
        .env("CAIRN_DATABASE_URL", &db.app_url)
        .env("CAIRN_REDIS_URL", redis)
        .output()
        .expect("cairn-server runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a text")
}

#[rstest]
#[case::told_by_redis(None)]
#[case::without_redis(Some("redis://127.0.0.1:1"))]
#[tokio::test(flavor = "multi_thread")]
async fn c057_a_revoked_key_ends_on_every_replica(#[case] redis: Option<&str>) {
    let db = TestDb::new().await;
    let redis = redis.map_or_else(shared_redis_url, str::to_owned);
    let settings = [("CAIRN_REDIS_URL", redis.as_str())];
    let replicas: Vec<Replica> = (0..3)
        .map(|_| Replica::with_settings(&db.app_url, &settings))
        .collect();
    let key = new_owner_key(&db).await;
    let other = new_owner_key(&db).await;
    let callers: Vec<Caller> = replicas
        .iter()
        .map(|replica| Caller::new(&replica.base, Some(&key)).in_project(PROJECT))
        .collect();
    callers[0].remember("note", "").await;
    let mut streams = Vec::new();
    for caller in &callers {
        assert_eq!(caller.get("/v1/me").await.status, 200);
        let mut stream = Stream::open(caller, "/v1/stream").await;
        assert_eq!(stream.line().await.0, 1);
        streams.push(stream);
    }
    let kept = Caller::new(&replicas[0].base, Some(&other)).in_project(PROJECT);
    let mut kept_stream = Stream::open(&kept, "/v1/stream?after=2").await;

    let revoke = ["admin", "key", "revoke", "acme", callers[0].key_id()];
    assert_eq!(command(&db, &redis, &revoke), "revoked\n");
    let refused = async {
        for caller in &callers {
            loop {
                let reply = caller.get("/v1/me").await;
                if reply.status == 401 {
                    assert_eq!(reply.code(), "credential_revoked");
                    assert_eq!(reply.json()["detail"], "key revoked");
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
    };
    let ended = async {
        for stream in &mut streams {
            assert_eq!(stream.end().await, "credential_revoked");
        }
    };
    let both = async { tokio::join!(refused, ended) };
    tokio::time::timeout(LIMIT, both)
        .await
        .expect("in the documented time");
    // Another key of the same member goes on.
    kept.remember("later", "").await;
    assert_eq!(soon(kept_stream.line()).await.0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_no_more_ends_or_narrows_its_stream() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("first", "").await;
    let elsewhere = owner.clone().in_project("name:other-app");
    elsewhere.remember("first there", "").await;
    let keys = [
        (
            app.owner().await,
            "expires_at = now() - interval '1 second'",
            "credential_expired",
        ),
        (
            app.owner().await,
            "scopes = '{work:write}'",
            "insufficient_scope",
        ),
        (
            app.owner().await,
            "key_id = 'gone' || credential_id",
            "credential_revoked",
        ),
    ];
    let narrowed = app.owner().await;
    let mut admin = app.db.admin().await;
    let mut streams = Vec::new();
    for (caller, change, code) in &keys {
        streams.push((Stream::open(caller, "/v1/stream?project=*").await, *code));
        change_key(&mut admin, caller, change).await;
    }
    let mut narrow = Stream::open(&narrowed, "/v1/stream?after=4&project=*").await;
    let limit = "project_id = (select min(project_id) from projects p
        where p.tenant_id = credentials.tenant_id)";
    change_key(&mut admin, &narrowed, limit).await;
    app.app.rights_changed(app.db.twins.0.tenant);
    for (stream, code) in &mut streams {
        assert_eq!(soon(stream.end()).await, *code);
    }
    // Sees no more than the first project from here on.
    soon(async {
        while narrowed.get("/v1/observations/2").await.status != 404 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    elsewhere.remember("hidden there", "").await;
    owner.remember("shown here", "").await;
    let (position, item) = soon(narrow.change()).await;
    assert_eq!(
        (position, &item["record"]["observation"]["title"]),
        (6, &json!("shown here"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_is_told_so() {
    let app = TestApp::start().await;
    let member = app.member().await;
    let mut stream = Stream::open(&member, "/v1/stream?project=*").await;
    let mut admin = app.db.admin().await;
    sqlx::query("update members set removed_at = now() where role = 'member'")
        .execute(&mut admin)
        .await
        .expect("removed");
    app.app.rights_changed(app.db.twins.0.tenant);
    assert_eq!(soon(stream.end()).await, "credential_revoked");
    let reply = member.get("/v1/me").await;
    assert_eq!(
        (reply.code(), &reply.json()["detail"]),
        ("credential_revoked".to_owned(), &json!("member removed"))
    );
}

/// Sets columns of a key, as the operator might.
async fn change_key(admin: &mut sqlx::PgConnection, caller: &Caller, change: &str) {
    let change = format!("update credentials set {change} where key_id = $1");
    let done = sqlx::query(sqlx::AssertSqlSafe(change))
        .bind(caller.key_id())
        .execute(admin)
        .await
        .expect("changed");
    assert_eq!(done.rows_affected(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_streams_that_ended() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let member = app.member().await;
    assert!(app.app.streams.is_empty());
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(Stream::open(&owner, "/v1/stream?project=*").await);
    }
    let others: Vec<Stream> = {
        let mut others = Vec::new();
        for _ in 0..8 {
            others.push(Stream::open(&member, "/v1/stream?project=*").await);
        }
        others
    };
    assert_eq!(app.app.streams.count(), 16);
    let key = owner.key_id();
    admin::revoke_key(&app.db.store, &app.app.clock, "acme", key)
        .await
        .expect("revoked");
    for stream in &mut streams {
        assert_eq!(soon(stream.end()).await, "credential_revoked");
    }
    // Those of the other member go on until their clients leave.
    soon(async {
        while app.app.streams.count() != 8 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(others);
    soon(async {
        while !app.app.streams.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_without_the_scope_opens_no_stream() {
    let app = TestApp::start().await;
    let writer = app.owner_with(&[Scope::MemoryWrite]).await;
    assert_eq!(writer.get("/v1/stream").await.code(), "insufficient_scope");
    assert!(app.app.streams.is_empty());
}
