//! What a caller is told who may not: where to get what it lacks.

use cairn_domain::scope::Scope;
use reqwest::Method;

use crate::support::{Caller, Reply, TestApp};

fn challenge(reply: &Reply) -> String {
    let told = reply.headers.get("www-authenticate");
    let told = told.unwrap_or_else(|| panic!("no challenge: {reply:?}"));
    told.to_str().expect("a text").to_owned()
}

#[tokio::test]
async fn whoever_is_nobody_is_told_where_to_sign_in() {
    let app = TestApp::start().await;
    let usual = "memory:read memory:write work:write evidence:read";
    let metadata = "/.well-known/oauth-protected-resource";
    for (path, part) in [("/v1/me", ""), ("/mcp", "/mcp")] {
        for caller in [app.anonymous(), Caller::new(&app.base, Some("x.y.z"))] {
            let request = caller
                .request(Method::POST, path)
                .json(&serde_json::json!({}));
            let reply = match path {
                "/mcp" => caller.send(request).await,
                _ => caller.get(path).await,
            };
            assert_eq!(reply.status, 401);
            let told = format!(
                "Bearer resource_metadata=\"{}{metadata}{part}\", scope=\"{usual}\"",
                app.base
            );
            assert_eq!(challenge(&reply), told);
            // The address works.
            let document = app.anonymous().get(&format!("{metadata}{part}")).await.ok();
            assert_eq!(document["resource"], format!("{}{part}", app.base));
        }
    }
}

#[tokio::test]
async fn whoever_may_not_is_told_all_that_the_call_needs() {
    let app = TestApp::start().await;
    let reader = app.owner_with(&[Scope::MemoryRead]).await;
    for (path, scopes) in [
        (
            "/v1/search?query=x&kind=tool_use",
            "memory:read evidence:read",
        ),
        ("/v1/grants?member=*", "tenant:admin"),
    ] {
        let refused = reader.get(path).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        let told = challenge(&refused);
        assert!(
            told.starts_with("Bearer error=\"insufficient_scope\""),
            "{told}"
        );
        assert!(told.contains(&format!("scope=\"{scopes}\"")), "{told}");
        assert!(
            told.contains("/.well-known/oauth-protected-resource\""),
            "{told}"
        );
    }
    let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_tool_uses", "arguments": {"ids": ["T1"]}}});
    let refused = reader.post("/mcp", message).await;
    assert_eq!(refused.status, 403);
    let told = challenge(&refused);
    assert!(told.contains("scope=\"evidence:read\""), "{told}");
    assert!(
        told.contains("/.well-known/oauth-protected-resource/mcp\""),
        "{told}"
    );
}
