//! The whole matrix: every operation and every tool, times every kind of caller. What is expected
//! of a cell follows from the operation's scope and what the caller has.

use cairn_domain::scope::{Role, Scope, Scopes};
use serde_json::{Value, json};

use super::{aliases, call, call_tool, fill, operations, tools};
use crate::support::{Caller, Reply, TestApp, all_scopes, item};

/// Operations on the whole tenant, which a credential that is limited to a project may not do
/// whatever it carries.
const WITHOUT_LIMIT: &[&str] = &[
    "/v1/audit",
    "/v1/cache/{builder}/clear",
    "/v1/members",
    "/v1/members/{handle}",
    "/v1/members/{handle}/code",
    "/v1/tenant",
    "/v1/usage",
];

const SERVICE_KEY: &str = "service key";
/// Operations that only members may do: what comes of them would outlive a service key.
const OF_MEMBERS: &[&str] = &["/v1/members/{handle}/code"];

/// One kind of caller.
struct Kind {
    name: &'static str,
    caller: Caller,
    lets: Lets,
}

/// What there is for a caller.
enum Lets {
    /// Nothing: everything is refused with this code.
    Nothing(&'static str),
    /// What these scopes allow, in the first tenant.
    Own(Scopes),
    /// The same, but nothing of what the first tenant has can be seen: another tenant's caller, or
    /// one that is limited to another project.
    Elsewhere { limited: bool },
}

async fn kinds(app: &TestApp) -> Vec<Kind> {
    let kind = |name, caller, lets| Kind { name, caller, lets };
    let beta = app.owner().await.in_project("name:beta-app");
    let note = item("observation", json!({"title": "nothing much"}));
    beta.events(vec![note]).await.ok();
    let mut kinds = vec![
        kind(
            "anonymous",
            app.anonymous(),
            Lets::Nothing("unauthenticated"),
        ),
        kind(
            "stranger",
            app.stranger().await,
            Lets::Elsewhere { limited: false },
        ),
        kind(
            "limited",
            app.limited_to("name:beta-app").await,
            Lets::Elsewhere { limited: true },
        ),
    ];
    let (revoked, expired) = (app.owner().await, app.owner().await);
    let mut admin = app.db.admin().await;
    for (caller, set) in [(&revoked, "revoked_at"), (&expired, "expires_at")] {
        let statement = format!("update credentials set {set} = now() where key_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(caller.key_id())
            .execute(&mut admin)
            .await
            .expect("set");
    }
    kinds.push(kind(
        "revoked",
        revoked,
        Lets::Nothing("credential_revoked"),
    ));
    kinds.push(kind(
        "expired",
        expired,
        Lets::Nothing("credential_expired"),
    ));
    let service = app.service(all_scopes()).await;
    let without_own: Scopes = Scope::ALL
        .into_iter()
        .filter(|scope| *scope != Scope::TenantOwn)
        .collect();
    kinds.push(kind(SERVICE_KEY, service, Lets::Own(without_own)));
    // From the least to the most: what an owner deletes is there for the others before.
    for (handle, role) in [
        ("rae", Role::Reader),
        ("mia", Role::Member),
        ("abe", Role::Admin),
        ("oda", Role::Owner),
    ] {
        let caller = app.newcomer(handle, role).await;
        kinds.push(kind(role.name(), caller, Lets::Own(role.scopes())));
    }
    kinds
}

/// Whether a cell is as it must be. `path` is of an operation; a tool has none.
fn check(kind: &Kind, what: &str, scope: Option<Scope>, is_by_id: bool, reply: &Reply) {
    let cell = format!("{} as {}: {reply:?}", what, kind.name);
    let body: Value = serde_json::from_str(&reply.text).unwrap_or_default();
    let code = body["code"].as_str().unwrap_or_default();
    assert!(reply.status.as_u16() < 500, "{cell}");
    match &kind.lets {
        Lets::Nothing(refusal) => {
            assert_eq!((reply.status.as_u16(), code), (401, *refusal), "{cell}");
        }
        Lets::Own(_) if kind.name == SERVICE_KEY && OF_MEMBERS.contains(&what) => {
            assert_eq!(code, "insufficient_scope", "{cell}");
        }
        Lets::Own(scopes) => {
            let lacks = scope.filter(|scope| !scopes.contains(*scope));
            if let Some(scope) = lacks {
                assert_eq!(code, "insufficient_scope", "{cell}");
                assert_eq!(body["scopes"], json!([scope.name()]), "{cell}");
                return;
            }
            // What one may do to what others made is another matter than the scope of the call.
            let refused = json!([scope.map(Scope::name)]);
            assert!(
                code != "insufficient_scope" || body["scopes"] != refused,
                "{cell}"
            );
            assert_ne!(reply.status, 401, "{cell}");
        }
        Lets::Elsewhere { limited } => {
            let shows = reply.text.contains("of acme") || reply.text.contains("zoe");
            assert!(!shows, "{cell}");
            if *limited && WITHOUT_LIMIT.contains(&what) {
                assert_eq!(code, "insufficient_scope", "{cell}");
            } else if is_by_id {
                assert_eq!(code, "not_found", "{cell}");
            } else {
                assert!(!matches!(reply.status.as_u16(), 401 | 403), "{cell}");
            }
        }
    }
}

#[tokio::test]
async fn every_operation_and_tool_lets_each_caller_do_what_it_may_and_no_more() {
    let app = TestApp::start().await;
    fill(&app).await;
    for kind in kinds(&app).await {
        // What is deleted stays so: reads come first.
        let mut all: Vec<_> = operations().into_iter().chain(aliases()).collect();
        all.sort_by_key(|operation| operation.method != reqwest::Method::GET);
        for operation in &all {
            let reply = call(&kind.caller, operation).await;
            let (scope, is_by_id) = (operation.scope, operation.is_by_id);
            check(&kind, operation.path, scope, is_by_id, &reply);
        }
        for (name, arguments, scope) in tools() {
            let reply = call_tool(&kind.caller, name, &arguments).await;
            check(&kind, name, scope, false, &reply);
        }
    }
}

/// Case C058: what is left out means least. Every read in the first tenant's project, without
/// naming one, shows nothing of its other project.
#[tokio::test]
async fn c058_a_read_without_a_project_is_of_the_current_one_alone() {
    let app = TestApp::start().await;
    fill(&app).await;
    let beta = app.owner().await.in_project("name:beta-app");
    let note = item("observation", json!({"title": "nothing much"}));
    beta.events(vec![note]).await.ok();
    let only_lists = |path: &str| !matches!(path, "/v1/members" | "/v1/audit" | "/v1/keys");
    for operation in operations().iter().chain(&aliases()) {
        let is_read = operation.scope == Some(Scope::MemoryRead) && only_lists(operation.path);
        let is_get = operation.method == reqwest::Method::GET || operation.path.contains("search");
        // Which projects there are is no project's own.
        if !is_read || !is_get || operation.path == "/v1/projects" {
            continue;
        }
        let here = call(&beta, operation).await;
        assert!(
            !here.text.contains("of acme"),
            "{}: {here:?}",
            operation.path
        );
        // Nowhere is not everywhere.
        let nowhere = call(&beta.clone().nowhere(), operation).await;
        let is_shown = nowhere.text.contains("of acme");
        assert!(
            operation.is_by_id || !is_shown,
            "{}: {nowhere:?}",
            operation.path
        );
    }
    for (name, arguments, scope) in tools() {
        if scope == Some(Scope::MemoryRead) {
            let here = call_tool(&beta, name, &arguments).await;
            assert!(!here.text.contains("of acme"), "{name}: {here:?}");
        }
    }
}
