//! Two replicas: any of them takes any step, and two that are shown the same token at the same
//! moment give the same successor.

use std::collections::BTreeSet;

use serde_json::json;

use super::{LetIn, REDIRECT, authorize_path, fetch, led_with, post_form, register, token};
use crate::support::browser::Browser;
use crate::support::{Caller, TestApp, redis_continuations};

#[tokio::test]
async fn each_step_is_taken_by_the_other_replica() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let client = register(&app, REDIRECT).await;
    let path = authorize_path(&client, &[]);
    let mut browser = Browser::new(&app.base);
    let code = app.sign_in_code("ben").await;
    let page = browser.get(&path).await;
    browser.base.clone_from(&other);
    let done = browser
        .submit(&page, "/oauth/sign-in", &[("code", &code)])
        .await;
    assert_eq!(done.status, 303, "{done:?}");
    browser.base.clone_from(&app.base);
    let page = browser.get(&path).await;
    browser.base.clone_from(&other);
    let done = browser.submit(&page, &path, &[("decision", "allow")]).await;
    let code = led_with(&done, "code").expect("a code");
    let let_in = LetIn::of(client.clone(), fetch(&app.base, &client, &code).await.ok());
    for base in [&app.base, &other] {
        assert_eq!(let_in.caller(base).get("/v1/me").await.status, 200);
    }
    let refreshed = let_in.refresh_with(&other, &let_in.refresh).await.ok();
    let again = let_in.refresh_with(&app.base, &let_in.refresh).await.ok();
    assert_eq!(refreshed["refresh_token"], again["refresh_token"]);
}

#[tokio::test]
async fn a_token_that_is_shown_to_both_at_once_has_one_successor() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let mut let_in = LetIn::by(&app, "ben", &[]).await;
    for _ in 0..3 {
        let shown = let_in.refresh.clone();
        let show = |base: &str| {
            let (base, shown, client) = (base.to_owned(), shown.clone(), let_in.client.clone());
            tokio::spawn(async move {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client.as_str()),
                    ("refresh_token", shown.as_str()),
                ];
                token(&base, &fields).await.ok()
            })
        };
        let both: Vec<_> = (0..8)
            .map(|n| show(if n % 2 == 0 { &app.base } else { &other }))
            .collect();
        let mut successors = BTreeSet::new();
        let mut last = None;
        for one in both {
            let answer = one.await.expect("answered");
            successors.insert(
                answer["refresh_token"]
                    .as_str()
                    .expect("a token")
                    .to_owned(),
            );
            last = Some(answer);
        }
        assert_eq!(successors.len(), 1, "{successors:?}");
        let_in = LetIn::of(let_in.client.clone(), last.expect("an answer"));
    }
    assert_eq!(let_in.caller(&other).get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn a_device_asks_one_replica_and_is_let_in_at_the_other() {
    let app = TestApp::start().await;
    let other = app.beside(redis_continuations()).await;
    let begun = post_form(
        &app.base,
        "/oauth/device_authorization",
        &[("client_id", "cairn")],
    )
    .await
    .ok();
    let text = |name: &str| begun[name].as_str().expect("a text").to_owned();
    let mut browser = Browser::new(&other);
    let path = format!("/device?user_code={}", text("user_code"));
    let page = browser.sign_in(&path, &app.sign_in_code("ben").await).await;
    browser.base.clone_from(&app.base);
    let done = browser
        .submit(&page, "/device", &[("decision", "allow")])
        .await;
    assert_eq!(done.status, 200, "{done:?}");
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("client_id", "cairn"),
        ("device_code", &text("device_code")),
    ];
    let answer = token(&other, &fields).await.ok();
    let access = answer["access_token"].as_str().expect("a token");
    let me = Caller::new(&app.base, Some(access))
        .get("/v1/me")
        .await
        .ok();
    assert_eq!(me["handle"], json!("ben"));
}
