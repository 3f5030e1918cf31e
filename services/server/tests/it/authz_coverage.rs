//! Every operation of the OpenAPI document and every tool, called by each kind of caller. A new
//! one that is missing here fails the test.

mod matrix;

use std::collections::BTreeSet;

use cairn_domain::scope::{Role, Scope};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Caller, PROJECT, TestApp, item};

/// An operation, how it is called, and the scope it needs.
struct Operation {
    method: Method,
    path: &'static str,
    /// The path as called, with an id of the first tenant's.
    call: &'static str,
    body: Option<Value>,
    scope: Option<Scope>,
    /// Whether the path names a record of the first tenant's, so that others find none.
    is_by_id: bool,
}

impl Operation {
    /// The same, naming nothing of anybody's.
    fn of_many(self) -> Self {
        Self {
            is_by_id: false,
            ..self
        }
    }
}

/// The ids that the first tenant's session and project get, so that they can be asked for.
const SESSION: &str = "/v1/sessions/0198f000-0000-7000-8000-0000000000c1";
const PROJECT_ID: &str = "/v1/projects/0198f000-0000-7000-8000-0000000000a1";

/// What the first tenant has, for others to find nothing of: a record of each kind, a member, a
/// key, a session and a project that can be named.
async fn fill(app: &TestApp) -> Caller {
    let owner = app.owner().await;
    let text = json!({"title": "treasure of acme", "request": "treasure of acme",
        "text": "treasure of acme", "files_read": ["treasure.rs"], "list": "treasure",
        "fields": {"note": "treasure of acme"}});
    let kinds = ["observation", "summary", "prompt", "work_entry"];
    let mut items = kinds.map(|kind| item(kind, text.clone())).to_vec();
    items.push(tool_use());
    owner.events(items).await.ok();
    app.newcomer("zoe", Role::Member).await;
    let mut admin = app.db.admin().await;
    for statement in [
        "update credentials c set key_id = 'zoeskey23456' from principals p
         where p.principal_id = c.principal_id and p.name = 'zoe'",
        "update sessions set uid = '0198f000-0000-7000-8000-0000000000c1'",
        "update projects set uid = '0198f000-0000-7000-8000-0000000000a1'",
    ] {
        let done = sqlx::query(statement).execute(&mut admin).await;
        assert_eq!(done.expect("it runs").rows_affected(), 1, "{statement}");
    }
    owner
}

fn operations() -> Vec<Operation> {
    let read = Some(Scope::MemoryRead);
    let write = Some(Scope::MemoryWrite);
    let admin = Some(Scope::TenantAdmin);
    let manage = |method, path, call, body| Operation {
        method,
        path,
        call,
        body: Some(body),
        scope: admin,
        is_by_id: true,
    };
    let get = |path, call, scope, is_by_id| Operation {
        method: Method::GET,
        path,
        call,
        body: None,
        scope,
        is_by_id,
    };
    let delete = |path, call| Operation {
        method: Method::DELETE,
        path,
        call,
        body: None,
        scope: write,
        is_by_id: true,
    };
    let patch = |path, call| Operation {
        method: Method::PATCH,
        path,
        call,
        body: Some(json!({"visibility": "team"})),
        scope: write,
        is_by_id: true,
    };
    let post = |path, body, scope| Operation {
        method: Method::POST,
        path,
        call: path,
        body: Some(body),
        scope,
        is_by_id: false,
    };
    vec![
        get("/v1/me", "/v1/me", None, false),
        get("/v1/sessions", "/v1/sessions", read, false),
        get("/v1/sessions/{id}", SESSION, read, true),
        get("/v1/projects", "/v1/projects", read, false),
        post("/v1/projects/resolve", json!({"key": PROJECT}), read),
        manage(
            Method::PATCH,
            "/v1/projects/{id}",
            PROJECT_ID,
            json!({"name": "alpha-app"}),
        ),
        get("/v1/members", "/v1/members", admin, false),
        post("/v1/members", json!({"handle": "new"}), admin),
        manage(
            Method::PATCH,
            "/v1/members/{handle}",
            "/v1/members/zoe",
            json!({"role": "reader"}),
        ),
        manage(
            Method::DELETE,
            "/v1/members/{handle}",
            "/v1/members/zoe",
            json!({}),
        ),
        get("/v1/keys", "/v1/keys", None, false),
        post("/v1/keys", json!({"name": "treasure"}), None),
        Operation {
            scope: None,
            ..delete("/v1/keys/{id}", "/v1/keys/zoeskey23456")
        },
        get("/v1/tenant", "/v1/tenant", admin, false),
        manage(
            Method::PATCH,
            "/v1/tenant",
            "/v1/tenant",
            json!({"tools": "core"}),
        )
        .of_many(),
        get("/v1/audit", "/v1/audit", admin, false),
        get("/v1/context", "/v1/context", read, false),
        get("/v1/usage", "/v1/usage", Some(Scope::TenantAdmin), false),
        post("/v1/mem-search", json!({"query": "treasure"}), read),
        get("/v1/search", "/v1/search?query=treasure", read, false),
        post("/v1/search", json!({"query": "treasure"}), read),
        get("/v1/timeline", "/v1/timeline?query=treasure", read, false),
        post(
            "/v1/observations/batch",
            json!({"ids": ["1", "S1", "P1"]}),
            read,
        ),
        post(
            "/v1/tool-uses/batch",
            json!({"ids": ["T1", "toolu_1"]}),
            Some(Scope::EvidenceRead),
        ),
        post(
            "/v1/work-state/entries",
            json!({"list": "treasure", "fields": {"n": 1}}),
            Some(Scope::WorkWrite),
        ),
        get("/v1/work-state", "/v1/work-state", read, false),
        get(
            "/v1/work-state/history",
            "/v1/work-state/history",
            read,
            false,
        ),
        Operation {
            call: "/v1/cache/context/clear",
            ..post(
                "/v1/cache/{builder}/clear",
                json!({}),
                Some(Scope::TenantAdmin),
            )
        },
        post("/v1/events", json!({"items": []}), write),
        post("/v1/events/check", json!({"event_ids": []}), write),
        get("/v1/observations", "/v1/observations", read, false),
        get(
            "/v1/observations/by-file",
            "/v1/observations/by-file?path=treasure.rs",
            read,
            false,
        ),
        get("/v1/changes", "/v1/changes", read, false),
        // One that opens would not end; what it shows is the business of `streams_model.rs`.
        get("/v1/stream", "/v1/stream?after=99999", read, false),
        patch("/v1/observations/{id}", "/v1/observations/1"),
        patch("/v1/summaries/{id}", "/v1/summaries/S1"),
        get("/v1/observations/{id}", "/v1/observations/1", read, true),
        get("/v1/summaries/{id}", "/v1/summaries/S1", read, true),
        get("/v1/prompts/{id}", "/v1/prompts/P1", read, true),
        delete("/v1/observations/{id}", "/v1/observations/1"),
        delete("/v1/summaries/{id}", "/v1/summaries/1"),
        delete("/v1/prompts/{id}", "/v1/prompts/1"),
        delete("/v1/tool-uses/{id}", "/v1/tool-uses/T1"),
        get("/v1/export", "/v1/export", Some(Scope::TenantAdmin), false),
        post("/v1/import", json!({}), write),
        post(
            "/v1/purge",
            json!({"project": "*", "dry_run": true}),
            Some(Scope::TenantAdmin),
        ),
        Operation {
            method: Method::DELETE,
            body: Some(json!({"confirm": "of acme"})),
            ..get("/v1/tenant", "/v1/tenant", Some(Scope::TenantOwn), false)
        },
        get("/v1/grants", "/v1/grants", None, false),
        Operation {
            scope: None,
            ..delete(
                "/v1/grants/{id}",
                "/v1/grants/00000000-0000-7000-8000-000000000001",
            )
        },
        Operation {
            call: "/v1/members/ben/code",
            ..post(
                "/v1/members/{handle}/code",
                json!({}),
                Some(Scope::TenantAdmin),
            )
        },
        // Last: what a stranger stores has the numbers that are asked for above.
        post("/v1/observations", json!({"title": "treasure"}), write),
    ]
}

/// The addresses of an older service, which stand in no document.
fn aliases() -> Vec<Operation> {
    let read = Some(Scope::MemoryRead);
    let get = |path, call| Operation {
        method: Method::GET,
        path,
        call,
        body: None,
        scope: read,
        is_by_id: false,
    };
    let post = |path, body, scope| Operation {
        method: Method::POST,
        path,
        call: path,
        body: Some(body),
        scope,
        is_by_id: false,
    };
    vec![
        get("/api/search", "/api/search?query=treasure"),
        get("/api/timeline", "/api/timeline?query=treasure"),
        post("/api/observations/batch", json!({"ids": ["1", "S1"]}), read),
        get(
            "/api/observations/by-file",
            "/api/observations/by-file?filePath=treasure.rs",
        ),
        get("/api/context/inject", "/api/context/inject"),
        post(
            "/api/work-state/entries",
            json!({"list": "treasure", "fields": {"n": 1}}),
            Some(Scope::WorkWrite),
        ),
        post("/api/work-state", json!({}), read),
        get("/api/work-state", "/api/work-state"),
        post("/api/mem-search", json!({"query": "treasure"}), read),
        post(
            "/api/memory/save",
            json!({"text": "treasure"}),
            Some(Scope::MemoryWrite),
        ),
        post(
            "/api/tool-uses/batch",
            json!({"ids": ["T1", "toolu_1"]}),
            Some(Scope::EvidenceRead),
        ),
    ]
}

/// Operations that anybody may call.
const OPEN: [&str; 8] = [
    "GET /livez",
    "GET /readyz",
    "GET /oauth/authorize",
    "GET /device",
    "POST /oauth/device_authorization",
    "POST /oauth/register",
    "POST /oauth/revoke",
    "POST /oauth/token",
];

async fn call(caller: &Caller, operation: &Operation) -> crate::support::Reply {
    let mut request = caller.request(operation.method.clone(), operation.call);
    if let Some(body) = &operation.body {
        request = request.json(body);
    }
    caller.send(request).await
}

/// Each tool with arguments that reach the first tenant's records, and the scope it needs, if any.
fn tools() -> Vec<(&'static str, Value, Option<Scope>)> {
    let read = Some(Scope::MemoryRead);
    let write = Some(Scope::MemoryWrite);
    let entry = json!({"list": "hoard", "fields": {"note": "treasure of others"}});
    vec![
        ("important_workflow", json!({}), None),
        ("__IMPORTANT", json!({}), None),
        ("mem_search", json!({"query": "treasure"}), read),
        ("get_observations", json!({"ids": ["1", "S1"]}), read),
        (
            "get_tool_uses",
            json!({"ids": ["T1", "toolu_1"]}),
            Some(Scope::EvidenceRead),
        ),
        ("work_state_write", entry, Some(Scope::WorkWrite)),
        ("work_state_read", json!({}), read),
        ("search", json!({"query": "treasure"}), read),
        ("observation_search", json!({"author": "ada"}), read),
        ("memory_search", json!({"query": "treasure"}), read),
        ("timeline", json!({"anchor": "1"}), read),
        ("observation_context", json!({}), read),
        ("memory_context", json!({"query": "treasure"}), read),
        ("save_memory", json!({"text": "x"}), write),
        ("observation_add", json!({"title": "x"}), write),
        ("memory_add", json!({"title": "x"}), write),
    ]
}

/// A call whose output tells whose it is.
fn tool_use() -> Value {
    let body = json!({"tool": "Bash", "host_tool_use_id": "toolu_1", "input": "{}",
        "output": "\"treasure of acme\""});
    item("tool_use", body)
}

async fn call_tool(caller: &Caller, name: &str, arguments: &Value) -> crate::support::Reply {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}});
    caller.post("/mcp", message).await
}

#[tokio::test]
async fn every_tool_is_covered_and_closed_to_others() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    let mut listed = owner.listed_tools(Some("legacy")).await;
    listed.sort_unstable();
    let mut covered: Vec<_> = tools().iter().map(|tool| tool.0).collect();
    covered.sort_unstable();
    assert_eq!(listed, covered);
    let items = ["observation", "summary"].map(|kind| {
        item(
            kind,
            json!({"title": "treasure of acme", "request": "treasure of acme"}),
        )
    });
    owner.events(items.to_vec()).await.ok();
    owner.events(vec![tool_use()]).await.ok();
    let entry = json!({"note": "treasure of acme"});
    assert_eq!(owner.work("hoard", entry).await.status, 201);
    let stranger = app.stranger().await;
    for (name, arguments, scope) in tools() {
        if let Some(scope) = scope {
            let others: Vec<Scope> = Scope::ALL.into_iter().filter(|s| *s != scope).collect();
            let without = app.owner_with(&others).await;
            let refused = call_tool(&without, name, &arguments).await;
            assert_eq!(refused.code(), "insufficient_scope", "{name}");
        }
        let anonymous = call_tool(&app.anonymous(), name, &arguments).await;
        assert_eq!(anonymous.code(), "unauthenticated", "{name}");
        let theirs = call_tool(&stranger, name, &arguments).await;
        assert!(
            theirs.status == 200 && !theirs.text.contains("of acme"),
            "{name}: {theirs:?}"
        );
        if matches!(scope, Some(Scope::MemoryRead | Scope::EvidenceRead)) {
            let own = call_tool(&owner, name, &arguments).await;
            assert!(own.text.contains("treasure of acme"), "{name}: {own:?}");
        }
    }
    let lists = owner.open_work().await;
    assert!(lists.contains("treasure of acme"), "{lists}");
}

#[test]
fn every_operation_of_the_document_is_covered() {
    let document = serde_json::to_value(cairn_server::http::document()).expect("serialises");
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            documented.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let covered: BTreeSet<String> = operations()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .chain(OPEN.map(str::to_owned))
        .collect();
    assert_eq!(documented, covered);
    let aliases: Vec<String> = aliases()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    assert_eq!(aliases, cairn_server::http::compat::names());
}

#[tokio::test]
async fn nobody_gets_in_without_a_key_or_the_scope() {
    let app = TestApp::start().await;
    let anonymous = app.anonymous();
    for operation in operations().into_iter().chain(aliases()) {
        let path = operation.path;
        assert_eq!(
            call(&anonymous, &operation).await.code(),
            "unauthenticated",
            "{path}"
        );
        if let Some(scope) = operation.scope {
            let others: Vec<Scope> = Scope::ALL.into_iter().filter(|s| *s != scope).collect();
            let caller = app.owner_with(&others).await;
            assert_eq!(
                call(&caller, &operation).await.code(),
                "insufficient_scope",
                "{path}"
            );
        }
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(anonymous.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn twins_never_see_each_other_through_any_operation() {
    let app = TestApp::start().await;
    let (owner, stranger) = (fill(&app).await, app.stranger().await);
    for operation in operations().into_iter().chain(aliases()) {
        let path = operation.path;
        let reply = call(&stranger, &operation).await;
        assert!(
            !reply.text.contains("treasure of acme"),
            "{path}: {reply:?}"
        );
        if operation.is_by_id {
            assert_eq!(reply.code(), "not_found", "{path}");
        }
    }
    // All is still there.
    let batch = owner
        .post("/v1/observations/batch", json!({"ids": ["1", "S1", "P1"]}))
        .await
        .ok();
    assert_eq!(batch["items"].as_array().expect("items").len(), 3);
    let evidence = owner
        .post("/v1/tool-uses/batch", json!({"ids": ["T1"]}))
        .await;
    assert!(evidence.text.contains("treasure of acme"), "{evidence:?}");
}
