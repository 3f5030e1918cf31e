//! The operator's commands, as they are typed: members, keys, projects and the audit log.

use cairn_server::admin::{Command, Operator};
use cairn_server::app::Clock;
use clap::Parser;
use serde_json::json;

use crate::support::TestApp;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// What a command prints, or why it does not.
async fn run(app: &TestApp, line: &str) -> Result<String, String> {
    let words = std::iter::once("admin").chain(line.split(' '));
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let clock = Clock::system();
    let operator = Operator {
        store: &app.db.store,
        clock: &clock,
    };
    let done = line.command.run(&operator).await;
    done.map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn the_operator_manages_a_tenant() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    owner.remember("x", "").await;
    owner.clone().in_project("name:b").remember("y", "").await;
    let said = |line: &'static str| {
        let app = &app;
        async move {
            run(app, line)
                .await
                .unwrap_or_else(|why| panic!("{line}: {why}"))
        }
    };
    let members = said("member list acme").await;
    let members: Vec<&str> = members.lines().collect();
    assert!(members[0].starts_with("ada  owner  -  "), "{members:?}");
    assert!(members[1].starts_with("ben  member  -  "), "{members:?}");
    assert_eq!(said("member role acme ben admin").await, "ben is admin");
    assert_eq!(said("member remove acme ben").await, "ben is removed");
    let keys = said("key list acme").await;
    let own = keys.lines().find(|line| line.starts_with(owner.key_id()));
    assert!(
        own.is_some_and(|line| line.contains("  ada  test  ")),
        "{keys}"
    );
    assert!(!keys.contains(owner.key()));
    assert_eq!(said("project rename acme b beta").await, "name:b is beta");
    let merged = said("project merge acme beta alpha-app").await;
    assert_eq!(merged, "name:b is an alias of name:alpha-app");
    let projects = said("project list acme").await;
    assert!(
        projects.ends_with("name:alpha-app  alpha-app  = name:b"),
        "{projects}"
    );
    let log = said("audit acme --limit 3").await;
    let log: Vec<&str> = log.lines().collect();
    assert_eq!(log.len(), 3);
    let detail = json!({"into": "name:alpha-app"});
    assert!(
        log[0].ends_with(&format!("  operator  project.merge  name:b  {detail}")),
        "{log:?}"
    );
    let one = said("audit acme --action member.remove").await;
    assert!(one.contains("  operator  member.remove  ben  "), "{one}");
    for (line, why) in [
        ("member list nobody", "there is no tenant"),
        ("member remove acme ben", "there is no member"),
        ("member remove acme ada", "last owner"),
        ("member role acme ada admin", "last owner"),
        ("member role acme ada king", "one of owner"),
        ("project rename acme c x", "there is no project"),
        ("project merge acme name:b alpha-app", "merged already"),
        ("project merge acme alpha-app name:b", "merged itself"),
        ("project merge acme alpha-app alpha-app", "into itself"),
    ] {
        let refused = run(&app, line).await.expect_err(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    // Nothing of it reached the other tenant.
    assert!(said("member list umbra").await.contains("ben  member"));
}
