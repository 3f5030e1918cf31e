//! Documents by which a program finds its way, also where the service sits under a path.

use serde_json::json;

use super::{Hands, REDIRECT};
use crate::support::TestApp;

#[tokio::test]
async fn a_program_finds_its_way_from_the_resource_to_the_keys() {
    let app = TestApp::start().await;
    let nobody = app.anonymous();
    for part in ["", "/mcp", "/sse"] {
        let path = format!("/.well-known/oauth-protected-resource{part}");
        let document = nobody.get(&path).await.ok();
        assert_eq!(document["resource"], format!("{}{part}", app.base));
        assert_eq!(document["authorization_servers"], json!([app.base]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        let scopes = document["scopes_supported"].as_array().expect("scopes");
        assert!(!scopes.contains(&json!("offline_access")));
    }
    for name in ["oauth-authorization-server", "openid-configuration"] {
        let document = nobody.get(&format!("/.well-known/{name}")).await.ok();
        assert_eq!(document["issuer"], app.base);
        assert_eq!(
            document["code_challenge_methods_supported"],
            json!(["S256"])
        );
        for flag in [
            "client_id_metadata_document_supported",
            "authorization_response_iss_parameter_supported",
        ] {
            assert_eq!(document[flag], true);
        }
        assert_eq!(
            document["registration_endpoint"],
            format!("{}/oauth/register", app.base)
        );
        let keys = document["jwks_uri"].as_str().expect("an address");
        let keys = nobody
            .get(keys.strip_prefix(&app.base).expect("ours"))
            .await
            .ok();
        assert_eq!(keys["keys"][0]["kid"], "t1");
        assert_eq!(keys["keys"][0]["alg"], "EdDSA");
        assert!(keys["keys"][0].get("d").is_none());
    }
}

#[tokio::test]
async fn c056_under_a_path_every_address_works_and_every_404_is_json() {
    let public = "https://127.0.0.1/team";
    let app = TestApp::at(Some(public), Hands::default().clock()).await;
    let nobody = app.anonymous();
    let refused = nobody.post("/team/mcp", json!({})).await;
    assert_eq!(refused.status, 401);
    let told = refused.headers["www-authenticate"]
        .to_str()
        .expect("a text");
    let metadata = format!("{public}/.well-known/oauth-protected-resource/mcp");
    assert!(
        told.contains(&format!("resource_metadata=\"{metadata}\"")),
        "{told}"
    );

    for (path, resource) in [
        ("/team/.well-known/oauth-protected-resource/mcp", "/mcp"),
        ("/.well-known/oauth-protected-resource/team/mcp", "/mcp"),
        ("/.well-known/oauth-protected-resource/mcp", "/mcp"),
        ("/.well-known/oauth-protected-resource/team/sse", "/sse"),
        ("/.well-known/oauth-protected-resource/team", ""),
        ("/.well-known/oauth-protected-resource", ""),
        ("/team/.well-known/oauth-protected-resource", ""),
    ] {
        let document = nobody.get(path).await.ok();
        assert_eq!(
            document["resource"],
            format!("{public}{resource}"),
            "{path}"
        );
        assert_eq!(document["authorization_servers"], json!([public]), "{path}");
    }
    for name in ["oauth-authorization-server", "openid-configuration"] {
        for path in [
            format!("/.well-known/{name}/team"),
            format!("/team/.well-known/{name}"),
            format!("/.well-known/{name}"),
        ] {
            let document = nobody.get(&path).await.ok();
            assert_eq!(document["issuer"], public, "{path}");
            assert_eq!(
                document["token_endpoint"],
                format!("{public}/oauth/token"),
                "{path}"
            );
        }
    }
    let body = json!({"redirect_uris": [REDIRECT]});
    assert_eq!(
        nobody
            .post("/team/oauth/register", body.clone())
            .await
            .status,
        201
    );
    for missing in [
        nobody.post("/register", body).await,
        nobody.get("/team/nothing").await,
        nobody
            .get("/.well-known/oauth-authorization-server/mcp")
            .await,
        nobody
            .get("/.well-known/oauth-protected-resource/other")
            .await,
        nobody.get("/teamwork/livez").await,
    ] {
        assert_eq!(missing.code(), "not_found", "{missing:?}");
    }
    // With a key, nothing needs to be found.
    let owner = app.owner().await;
    assert_eq!(owner.get("/team/v1/me").await.status, 200);
    assert_eq!(owner.get("/v1/me").await.status, 200);
    assert_eq!(nobody.get("/team/livez").await.status, 200);
    // Pages lead on below the path.
    let mut browser = crate::support::browser::Browser::new(&app.base);
    let page = browser.get("/team/device").await;
    assert!(
        page.text.contains("action=\"/team/oauth/sign-in\""),
        "{}",
        page.text
    );
    let code = app.sign_in_code("ben").await;
    let done = browser
        .submit(&page, "/team/oauth/sign-in", &[("code", &code)])
        .await;
    assert_eq!(crate::support::browser::location(&done), "/team/device");
}
