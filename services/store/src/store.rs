//! `Store`: the pool, the check of what the server came as, and how transactions begin.

use std::sync::Arc;
use std::time::Duration;

use cairn_domain::ids::{ProjectId, TenantId};
use cairn_domain::limits;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

use crate::bus::Bus;
use crate::changes::Horizon;
use crate::context::ContextRevision;
use crate::migrate::{self, Newer, statement};
use crate::search::profiles::Profiles;
use crate::turns::Turns;
use crate::{StoreError, SystemTx, TenantTx, Turn};

/// How long a call waits for a free connection before it says that the store is away.
const ACQUIRE_TIME: Duration = Duration::from_secs(3);
/// How long a connection may take to end what was abandoned on it: a statement ends by itself in
/// [`limits::STATEMENT_TIME`].
const SETTLE_TIME: Duration = limits::STATEMENT_TIME.saturating_add(Duration::from_secs(1));
/// How long a readiness check may take.
const PING_TIME: Duration = Duration::from_secs(3);

/// Where the database is and how much of it this process may use.
#[derive(Clone)]
pub struct StoreOptions {
    /// `postgres://…`, as the role `cairn_app`.
    pub url: String,
    /// Connections, at most.
    pub pool: u32,
}

/// Ends what an abandoned call left on a connection, before another one may use it. A connection
/// that does not answer is given up: it would be missed until the network does so.
async fn settle(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // A transaction that was dropped has left its ROLLBACK to be sent.
    if !connection.should_flush() {
        return Ok(true);
    }
    let settled = tokio::time::timeout(SETTLE_TIME, connection.ping()).await;
    settled
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
        .map(|()| true)
}

/// Whether Postgres had ended the connection before anything was asked on it (SQLSTATE 57P01 to
/// 57P03: shut down, crashed, not yet up).
fn is_gone(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(refusal) => {
            refusal.code().is_some_and(|code| code.starts_with("57P0"))
        }
        _ => false,
    }
}

/// The way to the database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pool: PgPool,
    turns: Arc<Turns>,
    bus: Bus,
    profiles: Profiles,
}

impl Store {
    /// Connects, and refuses what would break the tenant wall or work on unknown tables.
    ///
    /// # Errors
    /// `Refused` for a superuser, a role that bypasses row-level security, owns tables or is a
    /// member of one that does, and for missing or unknown migrations; `Unavailable` if nothing
    /// answers.
    pub async fn connect(options: &StoreOptions) -> Result<Self, StoreError> {
        let address = migrate::parse(&options.url)?.application_name("cairn-server");
        let pool = PgPoolOptions::new()
            .max_connections(options.pool)
            .acquire_timeout(ACQUIRE_TIME)
            .test_before_acquire(false)
            .after_release(|connection, _| Box::pin(settle(connection)))
            .connect_with(address)
            .await?;
        let turns = Arc::new(Turns::of_pool(options.pool));
        let bus = Bus::local();
        let store = Self {
            pool,
            turns,
            bus,
            profiles: Profiles::default(),
        };
        store.check_role().await?;
        migrate::check(&store.pool, Newer::Refused).await?;
        Ok(store)
    }

    /// The same store, telling other processes of what it writes.
    #[must_use]
    pub fn with_bus(self, bus: Bus) -> Self {
        Self { bus, ..self }
    }

    /// What processes tell each other of this store.
    #[must_use]
    pub const fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Waits for a writer's turn, to be taken before the transaction and held to its end: one
    /// tenant's writers leave connections to the others.
    ///
    /// # Errors
    /// `Crowded` if there were too many before it.
    pub async fn turn(&self, tenant: TenantId) -> Result<Turn, StoreError> {
        self.turns.take(tenant).await
    }

    /// Begins a transaction inside `tenant`, in one round trip. `name` says what for, in traces
    /// and in what Postgres logs.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free in time.
    pub async fn tenant(
        &self,
        tenant: TenantId,
        name: &'static str,
    ) -> Result<TenantTx, StoreError> {
        self.tenant_within(tenant, name, limits::STATEMENT_TIME)
            .await
    }

    /// The same with another time for each of its statements.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free in time.
    pub async fn tenant_within(
        &self,
        tenant: TenantId,
        name: &'static str,
        time: Duration,
    ) -> Result<TenantTx, StoreError> {
        tracing::trace!(name, tenant.id = %tenant.uuid(), "begin");
        // SET takes no parameters; an integer is safe to write out. Every statement of a tenant
        // goes by keys, where one plan serves all values, and planning over partitions would cost
        // several times the read; the search function asks for plans of its own.
        let begin = format!(
            "BEGIN /* {name} */; SET LOCAL app.tenant = '{}'; SET LOCAL statement_timeout = {}; \
             SET LOCAL plan_cache_mode = force_generic_plan",
            tenant.key(),
            time.as_millis()
        );
        let tx = self.begin(begin).await?;
        Ok(TenantTx {
            tx,
            tenant,
            bus: self.bus.clone(),
            profiles: self.profiles.clone(),
            moved: false,
        })
    }

    /// Begins a transaction for the calls across tenants. `name` says what for, in traces
    /// and in what Postgres logs.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free in time.
    pub async fn system(&self, name: &'static str) -> Result<SystemTx, StoreError> {
        tracing::trace!(name, "begin");
        let begin = format!(
            "BEGIN /* {name} */; SET LOCAL statement_timeout = {}",
            limits::STATEMENT_TIME.as_millis()
        );
        let tx = self.begin(begin).await?;
        Ok(SystemTx { tx })
    }

    /// At what revision the contexts of projects stand, in the order asked, each in its tenant;
    /// `None` for a project that is merged or gone. One statement for all who ask at once.
    ///
    /// # Errors
    /// `Unavailable` or `Timeout` if the database does not answer.
    pub async fn context_revisions(
        &self,
        wanted: &[(TenantId, ProjectId)],
    ) -> Result<Vec<Option<ContextRevision>>, StoreError> {
        let tenants: Vec<i32> = wanted.iter().map(|(tenant, _)| tenant.key()).collect();
        let projects: Vec<i32> = wanted.iter().map(|(_, project)| project.key).collect();
        let ask = sqlx::query_as(
            "select context_revision, settings_revision
             from system_context_revisions($1, $2) order by nth",
        );
        let asked = ask.bind(tenants).bind(projects).fetch_all(&self.pool);
        // Without a transaction no limit of a statement applies.
        let rows = tokio::time::timeout(limits::STATEMENT_TIME, asked).await;
        let rows: Vec<(Option<i64>, Option<i64>)> =
            rows.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        let read = |(project, settings): (Option<i64>, Option<i64>)| {
            let (project, settings) = project.zip(settings)?;
            Some(ContextRevision { project, settings })
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// How far tenants are, in the order asked; `None` for a tenant that is gone. One statement
    /// for all who wait.
    ///
    /// # Errors
    /// `Unavailable` or `Timeout` if the database does not answer.
    pub async fn horizons(&self, tenants: &[TenantId]) -> Result<Vec<Option<Horizon>>, StoreError> {
        let keys: Vec<i32> = tenants.iter().map(|tenant| tenant.key()).collect();
        let ask = "select last, epoch, life from system_positions($1) order by nth";
        let asked = sqlx::query_as(ask).bind(keys).fetch_all(&self.pool);
        // Without a transaction no limit of a statement applies.
        let rows = tokio::time::timeout(limits::STATEMENT_TIME, asked).await;
        let rows: Vec<(Option<i64>, Option<Uuid>, String)> =
            rows.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        let read = |(last, epoch, life): (Option<i64>, Option<Uuid>, String)| {
            Some(Horizon::of(last?, epoch?, &life))
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Begins on a connection that is still one. To ask each before its use would cost a round
    /// trip every time; to find out by the first statement costs one only after Postgres ended it,
    /// and nothing has been done on it yet.
    async fn begin(&self, begin: String) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        // Every idle connection may be gone at once.
        for _ in 0..self.pool.options().get_max_connections() {
            match self.pool.begin_with(statement(begin.clone())).await {
                Err(error) if is_gone(&error) => {}
                begun => return begun,
            }
        }
        self.pool.begin_with(statement(begin)).await
    }

    /// Whether the database answers and has every migration of this version.
    ///
    /// # Errors
    /// `Unavailable` or `Timeout` if it does not answer, `Refused` if a migration is missing.
    pub async fn ping(&self) -> Result<(), StoreError> {
        tokio::time::timeout(PING_TIME, migrate::check(&self.pool, Newer::Accepted))
            .await
            .unwrap_or(Err(StoreError::Timeout))
    }

    /// Closes all connections, after the transactions under way.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn check_role(&self) -> Result<(), StoreError> {
        // The session's login counts too: it could take off a role that it only put on.
        let (bypasses, owns, member): (bool, bool, bool) = sqlx::query_as(
            "select
               exists (select from pg_roles
                 where rolname in (current_user, session_user) and (rolsuper or rolbypassrls)),
               exists (select from pg_class c
                 where c.relnamespace = 'public'::regnamespace
                   and (pg_has_role(current_user, c.relowner, 'member')
                     or pg_has_role(session_user, c.relowner, 'member'))),
               exists (select from pg_roles o
                 where o.rolname in ('cairn_owner', 'cairn_search', 'cairn_system')
                   and (pg_has_role(current_user, o.oid, 'member')
                     or pg_has_role(session_user, o.oid, 'member')))",
        )
        .fetch_one(&self.pool)
        .await?;
        let why = if bypasses {
            "is a superuser or bypasses row-level security"
        } else if owns {
            "owns tables"
        } else if member {
            "is a member of cairn_owner, cairn_search or cairn_system"
        } else {
            return Ok(());
        };
        Err(StoreError::Refused(format!(
            "the database role {why}; connect as cairn_app"
        )))
    }
}
