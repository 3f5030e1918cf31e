//! Every column that could hold somebody's words has a rule for when they are gone, and the rules
//! are kept: what a purge or the time limits remove is in none of them.

mod support;

use cairn_domain::event::EventBody;
use cairn_domain::kind::Kind;
use cairn_domain::project::ProjectSet;
use cairn_domain::tool_use::{Evidence, ToolUseDraft};
use cairn_domain::work_state::Holder;
use cairn_store::purge::{PurgeFilter, Purger};
use cairn_store::test_util::TestDb;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};
use support::*;

/// When the words in a column are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// With what they were said in, when that is purged or its time is over.
    Goes,
    /// When the sessions are purged; until then they say how a session that stays went.
    Purged,
    /// Never: they name what stays, such as a project, a member or a session, or what was done to
    /// it; lines of the audit log go after days of their own.
    Names,
    /// Never: they are of a fixed set, or nothing can be read from them, such as a digest.
    Says,
    /// By themselves, soon: steps of signing in.
    SignsIn,
}

use Rule::{Goes, Names, Purged, Says, SignsIn};

const RULES: [(&str, Rule); 116] = [
    ("audit.action", Says),
    ("audit.detail", Names),
    ("audit.target", Names),
    ("authorizations.challenge", SignsIn),
    ("authorizations.client_id", SignsIn),
    ("authorizations.client_name", SignsIn),
    ("authorizations.code_hash", SignsIn),
    ("authorizations.device", SignsIn),
    ("authorizations.redirect_uri", SignsIn),
    ("authorizations.resource", SignsIn),
    ("authorizations.scopes", SignsIn),
    ("browser_sessions.session_hash", SignsIn),
    ("code_attempts.address", SignsIn),
    ("credentials.key_id", Says),
    ("credentials.name", Names),
    ("credentials.scopes", Says),
    ("credentials.secret_hash", Says),
    ("device_requests.client_id", SignsIn),
    ("device_requests.client_name", SignsIn),
    ("device_requests.device", SignsIn),
    ("device_requests.device_hash", SignsIn),
    ("device_requests.resource", SignsIn),
    ("device_requests.scopes", SignsIn),
    ("device_requests.source", SignsIn),
    ("device_requests.state", SignsIn),
    ("device_requests.user_hash", SignsIn),
    ("events.digest", Says),
    ("grants.client_id", Names),
    ("grants.client_name", Names),
    ("grants.device", Names),
    ("grants.resource", Names),
    ("grants.scopes", Says),
    ("imported.imported_author", Goes),
    ("imported.imported_id", Goes),
    ("jobs.kind", Says),
    ("jobs.last_error", Goes),
    ("jobs.payload", Goes),
    ("jobs.state", Says),
    ("members.email", Names), // so that who was removed is refused at sign-in
    ("members.role", Says),
    ("oauth_clients.client_id", Names),
    ("oauth_clients.name", Names),
    ("oauth_clients.redirect_uris", Names),
    ("oauth_clients.source", Says),
    ("observations.agent_id", Goes),
    ("observations.agent_type", Goes),
    ("observations.branch", Goes),
    ("observations.checkout", Goes),
    ("observations.facts", Goes),
    ("observations.files_modified", Goes),
    ("observations.files_read", Goes),
    ("observations.narrative", Goes),
    ("observations.origin", Says),
    ("observations.subtitle", Goes),
    ("principals.kind", Says),
    ("principals.name", Names),
    ("projects.key", Names),
    ("projects.key_folded", Names),
    ("projects.name", Names),
    ("projects.name_folded", Names),
    ("prompts.agent_id", Goes),
    ("prompts.agent_type", Goes),
    ("prompts.branch", Goes),
    ("prompts.checkout", Goes),
    ("prompts.origin", Says),
    ("prompts.text", Goes),
    ("records.concepts", Says),
    ("records.profile", Says), // hashes of words; goes with its row
    ("records.title", Goes),
    ("records.tsv", Goes),
    ("refresh_tokens.salt", Says),
    ("refresh_tokens.token_hash", Says),
    ("sessions.end_reason", Purged),
    ("sessions.host", Names),
    ("sessions.host_session_id", Names),
    ("sessions.last_reply", Goes),
    ("sessions.model", Purged),
    ("sessions.source", Purged),
    ("sign_in_codes.code_hash", SignsIn),
    ("summaries.agent_id", Goes),
    ("summaries.agent_type", Goes),
    ("summaries.branch", Goes),
    ("summaries.checkout", Goes),
    ("summaries.completed", Goes),
    ("summaries.investigated", Goes),
    ("summaries.learned", Goes),
    ("summaries.next_steps", Goes),
    ("summaries.notes", Goes),
    ("summaries.origin", Says),
    ("summaries.request", Goes),
    ("tenants.name", Names),
    ("tenants.settings", Says),
    ("term_counts.term", Goes),
    ("tool_uses.agent_id", Goes),
    ("tool_uses.agent_type", Goes),
    ("tool_uses.branch", Goes),
    ("tool_uses.checkout", Goes),
    ("tool_uses.files", Goes),
    ("tool_uses.host_tool_use_id", Goes),
    ("tool_uses.input", Goes),
    ("tool_uses.input_sha256", Says),
    ("tool_uses.output", Goes),
    ("tool_uses.output_sha256", Says),
    ("tool_uses.tool", Goes),
    ("work_entries.action", Says),
    ("work_entries.fields", Goes),
    ("work_entries.list", Goes),
    ("work_entries.machine", Goes),
    ("work_entries.task", Goes),
    ("work_items.holder", Goes),
    ("work_items.holder_session", Goes),
    ("work_items.keys", Goes),
    ("work_items.list", Goes),
    ("work_items.task", Goes),
    ("work_items.task_digest", Says),
    ("work_lists.list", Goes),
];

/// A word that stands in every column whose words go.
const WORD: &str = "sesame";

fn ruled(rules: &[Rule]) -> Vec<&'static str> {
    let ruled = RULES.iter().filter(|(_, rule)| rules.contains(rule));
    ruled.map(|(column, _)| *column).collect()
}

#[tokio::test]
async fn every_column_that_could_hold_words_has_a_rule() {
    let db = TestDb::new().await;
    // Whatever is not known to hold none.
    let mut columns: Vec<String> = sqlx::query_scalar(
        "select c.relname || '.' || a.attname from pg_class c
         join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'm')
           and not c.relispartition and c.relname <> '_sqlx_migrations'
           and not a.atttypid = any ('{bool,int2,int4,int8,float4,float8,uuid,date,timestamptz}'
             ::regtype[] || '{int4[],int8[],float4[]}'::regtype[])",
    )
    .fetch_all(&mut db.admin().await)
    .await
    .expect("columns");
    columns.sort();
    let ruled: Vec<&str> = RULES.iter().map(|(column, _)| *column).collect();
    assert_eq!(columns, ruled);
}

#[tokio::test]
async fn what_is_purged_is_in_no_column() {
    let db = TestDb::new().await;
    let mut admin = fill(&db).await;
    let twin = db.twins.0;
    let filter = PurgeFilter {
        projects: ProjectSet::All,
        author: None,
        before: None,
        kinds: Kind::ALL.to_vec(),
    };
    let purger = Purger {
        actor: Some(twin.owner),
        asked: "a test",
        at: minute(20_000),
    };
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let whole = tx.whole_span().await.expect("a span");
    while tx
        .purge_some(&filter, whole, purger)
        .await
        .expect("purged")
        .total()
        > 0
    {}
    while tx.scrub_sessions(&filter).await.expect("scrubbed") > 0 {}
    tx.commit().await.expect("commit");
    assert_eq!(holding(&mut admin, &[Goes, Purged]).await, [""; 0]);
}

#[tokio::test]
async fn what_is_over_its_time_is_in_no_column() {
    let db = TestDb::new().await;
    let mut admin = fill(&db).await;
    // All arrived at minute 10,000 or before.
    let (early, late) = (minute(1), minute(10_001));
    let tenant = db.twins.0.tenant;
    let mut tx = db.store.tenant(tenant, "test").await.expect("begin");
    let said = tx.expire_said(early, 100).await;
    assert_eq!(said.expect("looked"), 0, "not yet");
    for kind in Kind::ALL {
        while tx.expire(kind, late, 100, late).await.expect("expired") > 0 {}
    }
    while tx.expire_said(late, 1).await.expect("expired") > 0 {}
    tx.commit().await.expect("commit");
    assert_eq!(holding(&mut admin, &[Goes]).await, [""; 0]);
    let cancelled = "select bool_and(state = 'cancelled') from jobs";
    let cancelled: bool = sqlx::query_scalar(cancelled)
        .fetch_one(&mut admin)
        .await
        .expect("jobs");
    assert!(cancelled, "no job makes anything of it");
}

/// Writes the word into every column whose words go, and makes sure that it is there.
async fn fill(db: &TestDb) -> PgConnection {
    let twin = db.twins.0;
    let word = || WORD.to_owned();
    let mut noted = observation(WORD);
    if let EventBody::Observation(own) = &mut noted.body {
        (own.subtitle, own.narrative) = (word(), word());
        own.facts = vec![word()];
        (own.files_read, own.files_modified) = (vec![word()], vec![word()]);
    }
    let mut summed = summary(WORD);
    if let EventBody::Summary(own) = &mut summed.body {
        (own.investigated, own.learned, own.completed) = (word(), word(), word());
        (own.next_steps, own.notes) = (word(), word());
    }
    let used = event(EventBody::ToolUse(ToolUseDraft {
        tool: word(),
        host_tool_use_id: Some(word()),
        input: Evidence::of(r#"{"command":"sesame"}"#),
        output: Evidence::of(r#""sesame""#),
        failed: None,
        files: vec![word()],
    }));
    let began = EventBody::SessionStart {
        source: Some(word()),
        model: Some(word()),
    };
    let ended = EventBody::SessionEnd {
        reason: Some(word()),
    };
    let mut events = vec![event(began), prompt(WORD), used, turn_end(WORD), noted];
    events.extend([summed, event(ended)]);
    for one in &mut events {
        (one.agent_id, one.agent_type) = (Some(word()), Some(word()));
        (one.branch, one.checkout) = (Some(word()), Some(word()));
    }
    record(&db.store, &twin, twin.member, &events).await;
    import(&db.store, &twin, WORD, observation("from elsewhere")).await;
    claim_word(db).await;
    // Words that eight records hold are counted.
    let alike = (0..300).map(|n| observation(&format!("sesame {n}")));
    let alike: Vec<_> = alike.collect();
    record(&db.store, &twin, twin.member, &alike).await;
    let mut tx = db.store.tenant(twin.tenant, "test").await.expect("begin");
    let project = tx.find_projects("my-app").await.expect("find").remove(0);
    assert!(tx.count_words(project.project.id).await.expect("counted"));
    tx.commit().await.expect("commit");
    let mut admin = db.admin().await;
    for told in [
        "update jobs set last_error = 'sesame'",
        "update imported set imported_author = 'sesame'",
    ] {
        let told = sqlx::query(told).execute(&mut admin).await;
        assert!(told.expect("told").rows_affected() > 0);
    }
    let wanted = ruled(&[Goes, Purged]);
    assert_eq!(holding(&mut admin, &[Goes, Purged]).await, wanted);
    admin
}

/// A list, a task and a claim of this name.
async fn claim_word(db: &TestDb) {
    let twin = db.twins.0;
    let mut draft = claim(entry(WORD, 1, json!({"task": WORD, "note": WORD})));
    if let EventBody::WorkEntry { machine, .. } = &mut draft.body {
        *machine = Some(WORD.to_owned());
    }
    let holder = Holder::new(twin.member.key, WORD, WORD.to_owned());
    write_now(&db.store, &twin, twin.member, &holder, draft)
        .await
        .expect("claimed");
}

/// The columns under some rules that hold the word, or its stem; bytes are read in hex.
async fn holding(admin: &mut PgConnection, rules: &[Rule]) -> Vec<&'static str> {
    let mut holding = Vec::new();
    for column in ruled(rules) {
        let (table, name) = column.split_once('.').expect("a column");
        let sql = format!(
            "select exists (select from {table} t where t.{name}::text like '%sesam%'
               or t.{name}::text like '%' || encode('sesam', 'hex') || '%')"
        );
        let held: bool = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut *admin)
            .await
            .expect("an answer");
        if held {
            holding.push(column);
        }
    }
    holding
}
