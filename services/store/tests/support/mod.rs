//! Drafts of events for the store's tests: short to write, alike unless a test says otherwise.

#![expect(
    dead_code,
    reason = "each test binary uses the helpers it needs and no others"
)]

use cairn_domain::event::{EventBody, EventDraft, Origin, SessionKey, Visibility};
use cairn_domain::filter::Filter;
use cairn_domain::hlc::Hlc;
use cairn_domain::ids::{PrincipalId, ProjectId, RecordId};
use cairn_domain::observation::{ObservationDraft, ObservationType};
use cairn_domain::project::{ProjectKey, ProjectSet, Reader};
use cairn_domain::record::Row;
use cairn_domain::scope::Scope;
use cairn_domain::summary::SummaryDraft;
use cairn_domain::text::SearchTerms;
use cairn_domain::tool_use::{Evidence, ToolUseDraft};
use cairn_domain::work_state::{Action, Holder, WorkEntryDraft};
use cairn_store::credentials::{KeyOwner, NewCredential};
use cairn_store::events::{EventBatch, EventOutcome, Kept, LiveWriter, PreparedEvent, Recorded};
use cairn_store::grants::{Approval, FirstToken};
use cairn_store::search::Question;
use cairn_store::test_util::{TestDb, Twin, moment};
use cairn_store::{Store, StoreError, TenantTx};
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// `moment()` and some minutes.
pub fn minute(count: i64) -> DateTime<Utc> {
    moment() + TimeDelta::minutes(count)
}

pub fn project(name: &str) -> ProjectKey {
    ProjectKey {
        key: format!("git:git.example.com/acme/{name}"),
        name: name.to_owned(),
    }
}

pub fn event(body: EventBody) -> EventDraft {
    EventDraft {
        event_id: Uuid::now_v7(),
        at: moment(),
        project: project("my-app"),
        session: Some(SessionKey {
            host: "claude-code".to_owned(),
            id: "s-1".to_owned(),
        }),
        agent_id: None,
        agent_type: None,
        branch: Some("main".to_owned()),
        checkout: Some("~/my-app".to_owned()),
        visibility: Visibility::Team,
        digest: [7; 16],
        body,
    }
}

pub fn observation(title: &str) -> EventDraft {
    event(EventBody::Observation(ObservationDraft {
        kind: ObservationType::Bugfix,
        title: title.to_owned(),
        subtitle: String::new(),
        narrative: "The pool lost its connections.".to_owned(),
        facts: vec!["at most 20".to_owned(), "a, \"b\"".to_owned()],
        concepts: Vec::new(),
        files_read: vec!["src/net/retry.ts".to_owned()],
        files_read_more: 0,
        files_modified: Vec::new(),
        files_modified_more: 0,
        work_tokens: 1_800,
        tool_uses: vec![3, 1],
    }))
}

pub fn summary(request: &str) -> EventDraft {
    event(EventBody::Summary(SummaryDraft {
        request: request.to_owned(),
        learned: "signing is synchronous".to_owned(),
        ..SummaryDraft::default()
    }))
}

pub fn prompt(text: &str) -> EventDraft {
    event(EventBody::Prompt {
        text: Some(text.to_owned()),
    })
}

pub fn private_prompt() -> EventDraft {
    event(EventBody::Prompt { text: None })
}

pub fn tool_use(output: &str) -> EventDraft {
    event(EventBody::ToolUse(ToolUseDraft {
        tool: "Bash".to_owned(),
        host_tool_use_id: Some("tu_9".to_owned()),
        input: Evidence::of(r#"{"command":"make"}"#),
        output: Evidence::of(output),
        failed: Some(false),
        files: vec!["Makefile".to_owned()],
    }))
}

pub fn turn_end(last_reply: &str) -> EventDraft {
    event(EventBody::TurnEnd {
        last_reply: Some(last_reply.to_owned()),
    })
}

pub fn session_end() -> EventDraft {
    event(EventBody::SessionEnd {
        reason: Some("exit".to_owned()),
    })
}

pub fn work_entry(list: &str, machine: &str, after: Option<Hlc>) -> EventDraft {
    event(EventBody::WorkEntry {
        entry: WorkEntryDraft {
            list: list.to_owned(),
            fields: r#"{"task":"a","status":"todo"}"#.to_owned(),
            task: Some("a".to_owned()),
            after,
            action: None,
        },
        made_at: moment(),
        sent_at: moment(),
        machine: Some(machine.to_owned()),
    })
}

/// An entry of a list with these fields, made and sent some minutes after `moment()`.
pub fn entry(list: &str, minutes: i64, fields: serde_json::Value) -> EventDraft {
    let serde_json::Value::Object(fields) = fields else {
        unreachable!("tests give objects")
    };
    let entry = WorkEntryDraft::parse(list, fields, None).expect("within its limits");
    let mut draft = event(EventBody::WorkEntry {
        entry,
        made_at: minute(minutes),
        sent_at: minute(10_000),
        // A machine of its own: entries of one keep the order in which they came.
        machine: Some(Uuid::now_v7().to_string()),
    });
    draft.at = minute(minutes);
    draft
}

/// The entry with a claim of an hour on its task.
pub fn claim(mut draft: EventDraft) -> EventDraft {
    if let EventBody::WorkEntry { entry, .. } = &mut draft.body {
        entry.action = Some(Action::Claim { minutes: 60 });
    }
    draft
}

/// Writes an entry as its holder does who waits for the answer.
pub async fn write_now(
    store: &Store,
    twin: &Twin,
    who: PrincipalId,
    holder: &Holder,
    draft: EventDraft,
) -> Result<(), StoreError> {
    let events = prepared(&[draft]);
    let events = all(&events);
    let mut tx = store.tenant(twin.tenant, "test").await?;
    let batch = EventBatch {
        live: Some(LiveWriter {
            holder,
            is_admin: false,
            is_now: true,
        }),
        ..batch(who, &events)
    };
    tx.record_events(&batch).await?;
    tx.commit().await
}

pub fn at(minutes: i64, mut draft: EventDraft) -> EventDraft {
    draft.at = minute(minutes);
    draft
}

pub fn private(mut draft: EventDraft) -> EventDraft {
    draft.visibility = Visibility::Private;
    draft
}

pub fn in_project(name: &str, mut draft: EventDraft) -> EventDraft {
    draft.project = project(name);
    draft
}

pub fn in_session(id: &str, mut draft: EventDraft) -> EventDraft {
    draft.session = Some(SessionKey {
        host: "claude-code".to_owned(),
        id: id.to_owned(),
    });
    draft
}

/// Events as the API would prepare them.
pub fn prepared(events: &[EventDraft]) -> Vec<PreparedEvent> {
    let prepared = events.iter().cloned().map(PreparedEvent::of);
    prepared.collect::<Result<_, _>>().expect("prepared")
}

/// Every one of some prepared events.
pub fn all(events: &[PreparedEvent]) -> Vec<&PreparedEvent> {
    events.iter().collect()
}

/// The batch as the API would give it.
pub fn batch<'a>(author: PrincipalId, events: &'a [&'a PreparedEvent]) -> EventBatch<'a> {
    EventBatch {
        author,
        projects: &ProjectSet::All,
        arrived_at: minute(10_000),
        origin: Origin::Api,
        events,
        live: None,
    }
}

/// Records and commits.
pub async fn record(
    store: &Store,
    twin: &Twin,
    author: PrincipalId,
    events: &[EventDraft],
) -> Recorded {
    let mut tx = store
        .tenant(twin.tenant, "test.record")
        .await
        .expect("begin");
    let events = prepared(events);
    let recorded = tx
        .record_events(&batch(author, &all(&events)))
        .await
        .expect("recorded");
    tx.commit().await.expect("commit");
    recorded
}

/// Imports an event that had this id where it comes from, by somebody unknown here, and commits.
pub async fn import(store: &Store, twin: &Twin, id: &str, draft: EventDraft) -> Recorded {
    let mut tx = store
        .tenant(twin.tenant, "test.import")
        .await
        .expect("begin");
    let importer = tx.importer(minute(0)).await.expect("an importer");
    let kept = Kept {
        author: importer,
        importer,
        arrived_at: minute(1),
        source: Uuid::nil(),
        id: Some(id.to_owned()),
        author_name: Some("elsewhere".to_owned()),
        hlc: None,
        turn: None,
        session_number: None,
    };
    let event = PreparedEvent::imported(draft, kept).expect("prepared");
    let events = [&event];
    let batch = EventBatch {
        origin: Origin::Import,
        ..batch(twin.owner, &events)
    };
    let recorded = tx.record_events(&batch).await.expect("recorded");
    tx.commit().await.expect("commit");
    recorded
}

/// Records and commits; when another batch was quicker, begins anew as the server does.
pub async fn record_after_races(
    store: &Store,
    twin: &Twin,
    author: PrincipalId,
    events: &[EventDraft],
) -> Recorded {
    let events = prepared(events);
    loop {
        let mut tx = store
            .tenant(twin.tenant, "test.record")
            .await
            .expect("begin");
        match tx.record_events(&batch(author, &all(&events))).await {
            Err(StoreError::Raced) => {}
            recorded => {
                tx.commit().await.expect("commit");
                return recorded.expect("recorded");
            }
        }
    }
}

/// Resolves once a statement of somebody waits for a lock in this database.
pub async fn wait_until_blocked(db: &TestDb) {
    let mut admin = db.admin().await;
    loop {
        let waits: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity
             where wait_event_type = 'Lock' and datname = current_database())",
        )
        .fetch_one(&mut admin)
        .await
        .expect("an answer");
        if waits {
            return;
        }
    }
}

/// Sees all projects of the tenant.
pub fn reader(principal: PrincipalId) -> Reader {
    Reader {
        principal,
        projects: ProjectSet::All,
    }
}

/// Sees these projects alone.
pub fn reader_of(principal: PrincipalId, projects: &[ProjectId]) -> Reader {
    Reader {
        principal,
        projects: ProjectSet::Only(projects.to_vec()),
    }
}

/// The ids of the events that were stored now.
pub fn stored_ids(recorded: &Recorded) -> Vec<Option<&str>> {
    let id = |outcome: &EventOutcome| match outcome {
        EventOutcome::Stored { .. } => true,
        other => panic!("not stored now: {other:?}"),
    };
    assert!(recorded.outcomes.iter().all(id));
    recorded
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            EventOutcome::Stored { id } => id.as_deref(),
            _ => None,
        })
        .collect()
}

pub fn ids(texts: &[&str]) -> Vec<RecordId> {
    texts
        .iter()
        .map(|text| text.parse().expect("a record id"))
        .collect()
}

/// A member's key that can read and write.
pub fn credential(key_id: &str, owner: PrincipalId) -> NewCredential<'_> {
    NewCredential {
        key_id,
        secret_hash: [5; 32],
        name: "laptop",
        owner: KeyOwner::Member(owner),
        scopes: [Scope::MemoryRead, Scope::MemoryWrite]
            .into_iter()
            .collect(),
        project: None,
        expires_at: minute(100_000),
        parent: None,
        now: moment(),
    }
}

/// The best `limit` rows that hold any of a query's rarest words.
pub async fn search_index(
    tx: &mut TenantTx,
    terms: &SearchTerms,
    reader: &Reader,
    limit: usize,
) -> Result<Vec<Row>, StoreError> {
    let everything = Filter::default();
    let found = tx
        .search(&Question::new(terms, &everything), reader)
        .await?;
    let best = found.ranked.iter().take(limit);
    let ids: Vec<RecordId> = best.map(|(id, _)| *id).collect();
    tx.get_rows(&ids, reader).await
}

/// A grant, the yes that it came from, a sign-in code and a signed-in browser, each under hashes
/// of this number; the grant's id.
pub async fn sign_in_of_all_kinds(tx: &mut TenantTx, member: PrincipalId, number: i32) -> Uuid {
    let hash = |kind: u8| {
        let mut hash = [kind; 32];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        hash
    };
    tx.insert_authorization(&approval(member, hash(1)))
        .await
        .expect("a yes");
    let found = tx.lock_authorization(hash(1)).await.expect("found");
    let grant = Uuid::now_v7();
    let first = FirstToken {
        grant,
        hash: hash(2),
        resource: "https://memory.example.com",
        now: minute(0),
    };
    tx.begin_grant(&found.expect("there"), &first)
        .await
        .expect("begun");
    let time = (minute(0), minute(60));
    tx.insert_sign_in_code((member, "ada"), None, hash(3), time)
        .await
        .expect("a code");
    tx.insert_browser_session(member, hash(4), time)
        .await
        .expect("a session");
    grant
}

/// A member's yes to a program, under the hash of a code.
pub fn approval(member: PrincipalId, code_hash: [u8; 32]) -> Approval<'static> {
    Approval {
        code_hash,
        member,
        client_id: "probe",
        client_name: "Probe",
        redirect_uri: "http://127.0.0.1/callback",
        challenge: "challenge",
        scopes: [Scope::MemoryRead].into_iter().collect(),
        resource: "https://memory.example.com",
        now: minute(0),
        expires_at: minute(1),
    }
}
