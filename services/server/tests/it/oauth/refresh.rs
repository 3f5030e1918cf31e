//! Refresh tokens: used once, answered again for a moment, ended by a copy.

use super::{LetIn, error, start};

const DAY: i64 = 24 * 3600;

async fn next(app: &crate::support::TestApp, let_in: &LetIn) -> LetIn {
    let answer = let_in.refresh_with(&app.base, &let_in.refresh).await.ok();
    LetIn::of(let_in.client.clone(), answer)
}

#[tokio::test]
async fn a_token_is_used_once_and_a_lost_answer_is_given_again() {
    let (app, hands) = start().await;
    let first = LetIn::by(&app, "ben", &[]).await;
    let second = next(&app, &first).await;
    assert!(second.refresh != first.refresh && second.access != first.access);
    hands.forward(29);
    // The same successor, not another one.
    assert_eq!(next(&app, &first).await.refresh, second.refresh);
    let third = next(&app, &second).await;
    assert_eq!(next(&app, &second).await.refresh, third.refresh);
    assert_eq!(third.caller(&app.base).get("/v1/me").await.status, 200);
}

#[tokio::test]
async fn a_copy_that_is_shown_late_ends_the_grant() {
    let (app, hands) = start().await;
    let first = LetIn::by(&app, "ben", &[]).await;
    let second = next(&app, &first).await;
    hands.forward(31);
    assert_eq!(second.caller(&app.base).get("/v1/me").await.status, 200);
    let reused = first.refresh_with(&app.base, &first.refresh).await;
    assert_eq!(error(&reused), "invalid_grant");
    let ended = second.refresh_with(&app.base, &second.refresh).await;
    assert_eq!(error(&ended), "invalid_grant");
    let ended = second.caller(&app.base).get("/v1/me").await;
    assert_eq!(ended.code(), "credential_revoked");
    let told = ended.json()["detail"].as_str().map(str::to_owned);
    assert_eq!(told.as_deref(), Some("grant revoked"));
}

#[tokio::test]
async fn an_access_token_lasts_ten_minutes() {
    let (app, hands) = start().await;
    let let_in = LetIn::by(&app, "ben", &[]).await;
    hands.forward(600 + 25);
    assert_eq!(let_in.caller(&app.base).get("/v1/me").await.status, 200);
    hands.forward(10);
    let over = let_in.caller(&app.base).get("/v1/me").await;
    assert_eq!(over.code(), "credential_expired");
    let challenge = over.headers["www-authenticate"].to_str().expect("a text");
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    assert!(
        next(&app, &let_in)
            .await
            .caller(&app.base)
            .get("/v1/me")
            .await
            .status
            == 200
    );
}

#[tokio::test]
async fn a_grant_lasts_thirty_days_without_use_and_half_a_year_with() {
    let (app, hands) = start().await;
    let idle = LetIn::by(&app, "ben", &[]).await;
    let mut used = LetIn::by(&app, "ben", &[]).await;
    for _ in 0..6 {
        hands.forward(29 * DAY);
        used = next(&app, &used).await;
    }
    assert_eq!(
        error(&idle.refresh_with(&app.base, &idle.refresh).await),
        "invalid_grant"
    );
    hands.forward(6 * DAY + 60);
    assert_eq!(
        error(&used.refresh_with(&app.base, &used.refresh).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_token_is_good_for_its_program_alone_and_for_no_more_than_was_agreed() {
    let (app, _) = start().await;
    let (one, two) = (
        LetIn::by(&app, "ben", &[]).await,
        LetIn::by(&app, "ben", &[]).await,
    );
    assert_eq!(
        error(&two.refresh_with(&app.base, &one.refresh).await),
        "invalid_grant"
    );
    let more = [
        ("grant_type", "refresh_token"),
        ("client_id", one.client.as_str()),
        ("refresh_token", one.refresh.as_str()),
        ("scope", "memory:read skill:publish"),
    ];
    assert_eq!(
        error(&super::token(&app.base, &more).await),
        "invalid_scope"
    );
    assert!(next(&app, &one).await.refresh != one.refresh);
    for forged in ["", "cairn_r_x", &one.refresh[..one.refresh.len() - 1]] {
        let reply = one.refresh_with(&app.base, forged).await;
        assert_eq!(reply.status, 400, "{forged}");
    }
}
