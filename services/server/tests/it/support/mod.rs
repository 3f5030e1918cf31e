//! The service of one test: on a port of its own, over a database of its own, with callers of two
//! twin tenants.

pub mod browser;
mod caller;
pub mod frozen;
pub mod process;
pub mod steps;
pub mod stream;

use std::sync::Arc;
use std::time::Duration;

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::scope::{Role, Scope, Scopes};
use cairn_server::app::{App, Clock, Door};
use cairn_server::auth::key::ApiKey;
use cairn_server::auth::token::TokenKeys;
use cairn_server::lifecycle::{self, Drain};
use cairn_server::oauth::SignIn;
use cairn_server::oauth::address::PublicAddress;
use cairn_server::rates::CallerRates;
use cairn_store::bus::Bus;
use cairn_store::context_cache::ContextCache;
use cairn_store::continuations::Continuations;
use cairn_store::credentials::{KeyOwner, NewCredential};
use cairn_store::cursor_keys::KeyRing;
use cairn_store::test_util::{TestDb, Twin, shared_redis_url};
use cairn_store::{Store, StoreOptions};
use chrono::{TimeDelta, Utc};
use serde_json::json;
use sqlx::{Connection, PgConnection, Postgres, Transaction};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use caller::{Caller, Reply, item};

/// A ring of cursor keys for tests.
pub const RING: &str = "t1:dGVzdC1jdXJzb3Ita2V5LW9mLTMyLWJ5dGVzLWFuZC1tb3Jl";

/// The project that callers of a test stand in.
pub const PROJECT: &str = "name:alpha-app";

/// How the services of tests stop.
const DRAIN: Drain = Drain {
    notice: Duration::ZERO,
    deadline: Duration::from_secs(10),
};

/// A running service.
pub struct TestApp {
    /// Its database.
    pub db: TestDb,
    /// Where it listens, as `http://127.0.0.1:port`.
    pub base: String,
    /// The app behind it.
    pub app: Arc<App>,
    stop: CancellationToken,
    server: Option<JoinHandle<anyhow::Result<()>>>,
}

impl TestApp {
    /// A service over the shared Redis, under keys of its own.
    pub async fn start() -> Self {
        Self::with(redis_continuations()).await
    }

    /// A service that keeps continuations as given.
    pub async fn with(continuations: Continuations) -> Self {
        let db = TestDb::new().await;
        let store = db.store.clone();
        Self::over(db, store, continuations).await
    }

    /// A service that reaches its database another way.
    pub async fn over(db: TestDb, store: Store, continuations: Continuations) -> Self {
        Self::made(db, store, continuations, None, Clock::system()).await
    }

    /// A service whose clock stands still, with or without a place where replicas keep contexts
    /// for each other.
    pub async fn standing_still(shared: Option<ContextCache>) -> Self {
        let db = TestDb::new().await;
        let store = db.store.clone();
        let now = Utc::now();
        let clock = Clock::of(move || now);
        Self::made(db, store, redis_continuations(), shared, clock).await
    }

    /// Another app over the same stores, as a second replica in this process would be.
    pub fn twin_app(&self, shared: Option<ContextCache>) -> Arc<App> {
        let clock = self.app.clock.clone();
        let door = self.app.door.clone();
        App::new(
            self.db.store.clone(),
            redis_continuations(),
            shared,
            clock,
            door,
            sign_in(self.app.sign_in.address.url()),
        )
    }

    /// Another replica over the same database, with its own way to the continuations; answers
    /// where it listens. It ends with the test.
    pub async fn beside(&self, continuations: Continuations) -> String {
        let (clock, door) = (self.app.clock.clone(), self.app.door.clone());
        let sign_in = sign_in(self.app.sign_in.address.url());
        let app = App::new(
            self.db.store.clone(),
            continuations,
            None,
            clock,
            door,
            sign_in,
        );
        let (listener, base) = listen().await;
        let never = std::future::pending();
        tokio::spawn(lifecycle::serve(app, listener, DRAIN, never));
        base
    }

    /// Another replica over the same database, with a store and a bus of its own; answers its app
    /// and where it listens. It ends with the test.
    pub async fn replica(&self, bus: Bus) -> (Arc<App>, String) {
        let options = StoreOptions {
            url: self.db.app_url.clone(),
            pool: 10,
        };
        let store = Store::connect(&options).await.expect("connected");
        let (clock, door) = (self.app.clock.clone(), self.app.door.clone());
        let store = store.with_bus(bus);
        let sign_in = sign_in(self.app.sign_in.address.url());
        let app = App::new(store, redis_continuations(), None, clock, door, sign_in);
        let (listener, base) = listen().await;
        let never = std::future::pending();
        tokio::spawn(lifecycle::serve(Arc::clone(&app), listener, DRAIN, never));
        (app, base)
    }

    /// A service whose callers may go so fast.
    pub async fn limited(callers: CallerRates) -> Self {
        let db = TestDb::new().await;
        let (store, kept) = (db.store.clone(), redis_continuations());
        let around = (None, Clock::system());
        Self::reached_at(None, db, store, kept, around, callers, |it| it).await
    }

    /// Another replica over the same database, whose callers may go so fast; answers where it
    /// listens. It ends with the test.
    pub async fn limited_beside(&self, callers: CallerRates) -> String {
        let (store, clock) = (self.db.store.clone(), self.app.clock.clone());
        let sign_in = sign_in(self.app.sign_in.address.url());
        let kept = redis_continuations();
        let app = App::limited(store, kept, None, clock, door(), sign_in, callers);
        let (listener, base) = listen().await;
        let never = std::future::pending();
        tokio::spawn(lifecycle::serve(app, listener, DRAIN, never));
        base
    }

    async fn made(
        db: TestDb,
        store: Store,
        continuations: Continuations,
        shared: Option<ContextCache>,
        clock: Clock,
    ) -> Self {
        Self::reached_at(
            None,
            db,
            store,
            continuations,
            (shared, clock),
            CallerRates::none(),
            |it| it,
        )
        .await
    }

    /// A service with another kind of sign-in.
    pub async fn signing_in(clock: Clock, how: impl FnOnce(SignIn) -> SignIn) -> Self {
        let db = TestDb::new().await;
        let store = db.store.clone();
        Self::reached_at(
            None,
            db,
            store,
            redis_continuations(),
            (None, clock),
            CallerRates::none(),
            how,
        )
        .await
    }

    /// A service whose clock is `clock`, reached from outside at an address that is not where it
    /// listens, if one is given.
    pub async fn at(public: Option<&str>, clock: Clock) -> Self {
        let db = TestDb::new().await;
        let store = db.store.clone();
        let public = public.map(str::to_owned);
        let continuations = redis_continuations();
        Self::reached_at(
            public,
            db,
            store,
            continuations,
            (None, clock),
            CallerRates::none(),
            |it| it,
        )
        .await
    }

    async fn reached_at(
        public: Option<String>,
        db: TestDb,
        store: Store,
        continuations: Continuations,
        (shared, clock): (Option<ContextCache>, Clock),
        callers: CallerRates,
        how: impl FnOnce(SignIn) -> SignIn,
    ) -> Self {
        let (listener, base) = listen().await;
        let public = public.unwrap_or_else(|| base.clone());
        let sign_in = how(sign_in(&public));
        let app = App::limited(
            store,
            continuations,
            shared,
            clock,
            door(),
            sign_in,
            callers,
        );
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let server = tokio::spawn(lifecycle::serve(Arc::clone(&app), listener, DRAIN, stopped));
        Self {
            db,
            base,
            app,
            stop,
            server: Some(server),
        }
    }

    /// Tells the service to stop, as a signal would.
    pub fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the service has stopped.
    pub async fn stopped(&mut self) {
        self.stop.cancel();
        let server = self.server.take().expect("stopped once");
        server
            .await
            .expect("the server task ends")
            .expect("the service stops in order");
    }

    /// The first tenant's owner, standing in [`PROJECT`].
    pub async fn owner(&self) -> Caller {
        let twin = self.db.twins.0;
        self.caller(twin.tenant, twin.owner, all_scopes()).await
    }

    /// The first tenant's member.
    pub async fn member(&self) -> Caller {
        let twin = self.db.twins.0;
        self.caller(twin.tenant, twin.member, all_scopes()).await
    }

    /// The other tenant's owner: same names, same project key.
    pub async fn stranger(&self) -> Caller {
        let twin: Twin = self.db.twins.1;
        self.caller(twin.tenant, twin.owner, all_scopes()).await
    }

    /// The first tenant's owner with fewer scopes.
    pub async fn owner_with(&self, scopes: &[Scope]) -> Caller {
        let twin = self.db.twins.0;
        self.caller(twin.tenant, twin.owner, scopes.iter().copied().collect())
            .await
    }

    /// A code with which a member of the first tenant signs in on a page.
    pub async fn sign_in_code(&self, handle: &str) -> String {
        let path = format!("/v1/members/{handle}/code");
        let made = self.owner().await.post(&path, json!({})).await.ok();
        made["code"].as_str().expect("a code").to_owned()
    }

    /// Somebody new in the first tenant.
    pub async fn newcomer(&self, handle: &str, role: Role) -> Caller {
        let twin = self.db.twins.0;
        let tx = self.db.store.tenant(twin.tenant, "test.newcomer").await;
        let mut tx = tx.expect("begin");
        let member = tx.insert_member(handle, None, role, Utc::now()).await;
        tx.commit().await.expect("commit");
        self.caller(twin.tenant, member.expect("added"), all_scopes())
            .await
    }

    /// A service key of the first tenant's.
    pub async fn service(&self, scopes: Scopes) -> Caller {
        let tenant = self.db.twins.0.tenant;
        let key = insert_key_of(&self.db.store, tenant, KeyOwner::Service, scopes, None).await;
        Caller::new(&self.base, Some(&key)).in_project(PROJECT)
    }

    /// Nobody.
    pub fn anonymous(&self) -> Caller {
        Caller::new(&self.base, None).in_project(PROJECT)
    }

    async fn caller(&self, tenant: TenantId, owner: PrincipalId, scopes: Scopes) -> Caller {
        let key = insert_key(&self.db.store, tenant, owner, scopes, None).await;
        Caller::new(&self.base, Some(&key)).in_project(PROJECT)
    }

    /// A caller whose key sees one project only.
    pub async fn limited_to(&self, project: &str) -> Caller {
        let twin = self.db.twins.0;
        let mut tx = self
            .db
            .store
            .tenant(twin.tenant, "test.project")
            .await
            .expect("begin");
        let found = tx.find_projects(project).await.expect("answers");
        tx.commit().await.expect("commit");
        let [project] = found.as_slice() else {
            panic!("one project: {found:?}")
        };
        let key = insert_key(
            &self.db.store,
            twin.tenant,
            twin.owner,
            all_scopes(),
            Some(project.project.id),
        );
        Caller::new(&self.base, Some(&key.await))
    }
}

/// Waits for what must happen, but not for ever.
pub async fn soon<T>(happens: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    let happened = tokio::time::timeout(limit, happens).await;
    happened.expect("it happens soon")
}

/// A text of base64 that says something else: its middle character is another one. The last one
/// may say nothing, and any may be what it is changed to.
pub fn forged(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] = if bytes[middle] == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).expect("plain")
}

fn door() -> Door {
    Door {
        hosts: vec!["127.0.0.1".to_owned()],
        origins: Vec::new(),
    }
}

/// A ring of token keys for tests.
pub const TOKEN_RING: &str = "t1:nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";

/// Sign-in for a service that is reached at `public`.
pub fn sign_in(public: &str) -> SignIn {
    let address = PublicAddress::parse(public).expect("an address");
    SignIn::new(address, TokenKeys::parse(TOKEN_RING).expect("a ring"))
}

/// Continuations in the shared Redis, under a prefix of their own.
pub fn redis_continuations() -> Continuations {
    continuations_under(&format!("test:{}:", Uuid::new_v4()), RING)
}

/// One replica's way to the continuations in the shared Redis that lie under a prefix.
pub fn continuations_under(prefix: &str, ring: &str) -> Continuations {
    let ring = KeyRing::parse(ring).expect("a ring");
    Continuations::connect_with_prefix(&shared_redis_url(), ring, prefix).expect("an address")
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    (listener, base)
}

/// A cache of contexts in the Redis at `url`, under a prefix of its own.
pub fn context_cache(url: &str) -> ContextCache {
    let prefix = format!("test:{}:", Uuid::new_v4());
    ContextCache::connect_with_prefix(url, &prefix).expect("an address")
}

/// Holds the counters of all tenants until it ends: a batch waits for them inside the service.
pub async fn hold_counters(admin: &mut PgConnection) -> Transaction<'_, Postgres> {
    let mut blocker = admin.begin().await.expect("begin");
    sqlx::query("select * from tenant_counters for update")
        .fetch_all(&mut *blocker)
        .await
        .expect("locked");
    blocker
}

/// Every scope there is; the role still limits it.
pub fn all_scopes() -> Scopes {
    Scope::ALL.into_iter().collect()
}

async fn insert_key(
    store: &Store,
    tenant: TenantId,
    owner: PrincipalId,
    scopes: Scopes,
    project: Option<cairn_domain::ids::ProjectId>,
) -> String {
    insert_key_of(store, tenant, KeyOwner::Member(owner), scopes, project).await
}

async fn insert_key_of(
    store: &Store,
    tenant: TenantId,
    owner: KeyOwner,
    scopes: Scopes,
    project: Option<cairn_domain::ids::ProjectId>,
) -> String {
    let key = ApiKey::generate(&mut rand::rng());
    let mut tx = store
        .tenant(tenant, "test.insert_key")
        .await
        .expect("begin");
    let days = i64::from(cairn_domain::limits::KEY_DAYS);
    tx.insert_credential(&NewCredential {
        key_id: key.id(),
        secret_hash: key.hash(),
        name: "test",
        owner,
        scopes,
        project,
        expires_at: Utc::now() + TimeDelta::days(days),
        parent: None,
        now: Utc::now(),
    })
    .await
    .expect("inserted");
    tx.commit().await.expect("commit");
    key.reveal()
}

/// A key of the first tenant's owner, for a service in a process of its own.
pub async fn new_owner_key(db: &TestDb) -> String {
    insert_key(
        &db.store,
        db.twins.0.tenant,
        db.twins.0.owner,
        all_scopes(),
        None,
    )
    .await
}
