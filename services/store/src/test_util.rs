//! Databases for tests (feature `test-util`): one for each test, cloned from a migrated template
//! and entered as `cairn_app`, with two tenants alike in everything.
//!
//! The server is a throw-away one whose superuser address stands in `CAIRN_TEST_DATABASE_URL`.

mod redis_cluster;
mod redis_server;

use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::scope::{Role, Scope};
use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use uuid::Uuid;

use crate::migrate::{self, MIGRATIONS, ROLES, statement};
use crate::{FirstKey, Store, StoreOptions};
use cairn_domain::hex::hex;

pub use redis_cluster::PrivateCluster;
pub use redis_server::{PrivateRedis, shared_url as shared_redis_url};

/// Connections of one test's store.
const POOL: u32 = 12;
/// The advisory lock under which the template is made.
const TEMPLATE_LOCK: i64 = 0x0063_6169_726e;

/// A database of one test. It is dropped with this value, unless the test failed.
pub struct TestDb {
    /// The store, as the server would open it.
    pub store: Store,
    /// The superuser's address of the same database, for looking behind the wall.
    pub admin_url: String,
    /// The address with which [`TestDb::store`] was opened.
    pub app_url: String,
    /// Two tenants with the same members.
    pub twins: (Twin, Twin),
    name: String,
    server: PgConnectOptions,
}

/// A tenant of a test.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    /// The tenant.
    pub tenant: TenantId,
    /// Its owner, `ada`.
    pub owner: PrincipalId,
    /// A member, `ben`.
    pub member: PrincipalId,
}

impl TestDb {
    /// Makes a database with twins in it.
    ///
    /// # Panics
    /// If `CAIRN_TEST_DATABASE_URL` is not set, or anything fails.
    pub async fn new() -> Self {
        let server = server();
        let template = template(&server).await;
        let name = format!("cairn_test_{}", Uuid::now_v7().simple());
        let create = format!("create database {name} template {template} strategy file_copy");
        run(&server, create).await;
        let admin = server.clone().database(&name);
        let app_url = address(&admin.clone().username("cairn_app"));
        let store = Store::connect(&StoreOptions {
            url: app_url.clone(),
            pool: POOL,
        })
        .await
        .expect("cairn_app may open a migrated database");
        let twins = (twin(&store, "acme").await, twin(&store, "umbra").await);
        Self {
            store,
            admin_url: address(&admin),
            app_url,
            twins,
            name,
            server,
        }
    }

    /// A connection as superuser, which no wall holds back.
    ///
    /// # Panics
    /// If the database does not answer.
    pub async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.admin_url)
            .await
            .expect("the superuser may connect")
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let (server, name) = (self.server.clone(), self.name.clone());
        // A drop cannot wait inside the test's runtime; a thread with its own can.
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(run(&server, format!("drop database {name} with (force)")));
        });
        dropped.join().expect("the test's database can be dropped");
    }
}

/// The statement that reads open items, for a look at its plan.
#[must_use]
pub const fn open_items() -> &'static str {
    crate::work_state::OPEN_ITEMS
}

/// The instant that tests without an interest in time use.
///
/// # Panics
/// Never: the instant exists.
#[must_use]
pub fn moment() -> DateTime<Utc> {
    DateTime::from_timestamp(1_791_618_300, 0).expect("an instant")
}

async fn twin(store: &Store, name: &str) -> Twin {
    let mut system = store.system("test.twin").await.expect("begin");
    let (tenant, owner) = system
        .create_tenant(name, "ada", first_key(name), moment())
        .await
        .expect("a tenant");
    system.commit().await.expect("commit");
    let mut tx = store.tenant(tenant, "test.twin").await.expect("begin");
    let member = tx
        .insert_member("ben", None, Role::Member, moment())
        .await
        .expect("a member");
    tx.commit().await.expect("commit");
    Twin {
        tenant,
        owner,
        member,
    }
}

/// A first key of an owner, which nobody holds: the id is the one given.
#[must_use]
pub fn first_key(key_id: &str) -> FirstKey<'_> {
    FirstKey {
        key_id,
        secret_hash: [4; 32],
        scopes: Scope::ALL.into_iter().collect(),
        expires_at: moment() + TimeDelta::days(90),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests find their database in the environment"
)]
fn server() -> PgConnectOptions {
    let url = std::env::var("CAIRN_TEST_DATABASE_URL")
        .expect("CAIRN_TEST_DATABASE_URL is not set: run the tests with ./dev test");
    migrate::parse(&url).expect("CAIRN_TEST_DATABASE_URL is a postgres:// address")
}

fn address(options: &PgConnectOptions) -> String {
    options.to_url_lossy().to_string()
}

/// The template of these migrations, made if this is the first test to need it.
async fn template(server: &PgConnectOptions) -> String {
    let name = template_name();
    let mut lock = PgConnection::connect_with(server)
        .await
        .expect("the test server answers");
    sqlx::query("select pg_advisory_lock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut lock)
        .await
        .expect("the lock");
    let exists: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(&name)
            .fetch_one(&mut lock)
            .await
            .expect("the list of databases");
    if !exists {
        make_template(server, &name).await;
    }
    lock.close().await.expect("close");
    name
}

/// It gets its name only when it is whole: an interrupted run leaves nothing half made in use.
async fn make_template(server: &PgConnectOptions, name: &str) {
    let raw = format!("{name}_raw");
    run(
        server,
        format!("drop database if exists {raw} with (force)"),
    )
    .await;
    run(server, format!("create database {raw}")).await;
    let url = address(&server.clone().database(&raw));
    migrate::prepare_database(&url).await.expect("roles");
    migrate::migrate(&url).await.expect("migrations");
    run(server, format!("alter database {raw} rename to {name}")).await;
}

fn template_name() -> String {
    let mut digest = Sha256::new_with_prefix(ROLES);
    for migration in MIGRATIONS.iter() {
        digest.update(&migration.checksum);
    }
    let digest: [u8; 32] = digest.finalize().into();
    format!("cairn_template_{}", hex(&digest[..8]))
}

async fn run(server: &PgConnectOptions, sql: String) {
    let mut connection = PgConnection::connect_with(server)
        .await
        .expect("the test server answers");
    sqlx::raw_sql(statement(sql))
        .execute(&mut connection)
        .await
        .expect("the server does as it is told");
    connection.close().await.expect("close");
}
