//! Migrations: the ones this build knows, applying them, and refusing a database that differs.

use std::collections::BTreeMap;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, PgExecutor};

use crate::StoreError;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// The roles and grants that migrations build on; `deploy/postgres/roles.sql`.
pub(crate) const ROLES: &str = include_str!("../../../deploy/postgres/roles.sql");

/// Brings the database at `url` to the newest migration, as the role `cairn_owner`. The login in
/// `url` must be a member of that role. Applying nothing is no error.
///
/// # Errors
/// `Refused` if the database has a migration this build does not know or knows differently;
/// `Unavailable` if it cannot be reached.
pub async fn migrate(url: &str) -> Result<(), StoreError> {
    let options = parse(url)?.options([("role", "cairn_owner")]);
    let mut connection = PgConnection::connect_with(&options).await?;
    MIGRATIONS.run(&mut connection).await.map_err(refuse)?;
    connection.close().await?;
    Ok(())
}

/// Makes the four roles and what they need in the database at `url`. For the embedded database
/// and for tests, whose login is the superuser; a deployment runs `roles.sql` itself.
///
/// # Errors
/// `Refused` if `url` is no address; `Unavailable` if nothing answers there.
pub async fn prepare_database(url: &str) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect_with(&parse(url)?).await?;
    sqlx::raw_sql(ROLES).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// How a database's migrations may differ from the build's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newer {
    /// At start: a migration of a newer version is refused.
    Refused,
    /// In a running server: a newer replica may have expanded the schema meanwhile.
    Accepted,
}

/// Checks that every migration of this build was applied, unchanged.
///
/// # Errors
/// `Refused`, saying which one is missing, unknown or different.
pub(crate) async fn check(executor: impl PgExecutor<'_>, newer: Newer) -> Result<(), StoreError> {
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("select version, checksum from _sqlx_migrations where success")
            .fetch_all(executor)
            .await
            .map_err(no_migrations)?;
    let mut applied: BTreeMap<i64, Vec<u8>> = applied.into_iter().collect();
    for known in MIGRATIONS.iter() {
        let version = known.version;
        match applied.remove(&version) {
            None => {
                return refused(format!(
                    "the database lacks migration {version}; run: cairn-server migrate"
                ));
            }
            Some(checksum) if checksum != *known.checksum => {
                return refused(format!(
                    "migration {version} was applied in another form than this version has"
                ));
            }
            Some(_) => {}
        }
    }
    match applied.first_key_value() {
        Some((version, _)) if newer == Newer::Refused => refused(format!(
            "the database has migration {version}, which this version does not know; \
             start a newer one"
        )),
        _ => Ok(()),
    }
}

pub(crate) fn parse(url: &str) -> Result<PgConnectOptions, StoreError> {
    // The address may hold a password: it is not repeated.
    url.parse()
        .map_err(|_| StoreError::Refused("the database URL is no postgres:// address".to_owned()))
}

fn refused(why: String) -> Result<(), StoreError> {
    Err(StoreError::Refused(why))
}

fn no_migrations(error: sqlx::Error) -> StoreError {
    let missing =
        matches!(&error, sqlx::Error::Database(e) if e.code().as_deref() == Some("42P01"));
    if missing {
        StoreError::Refused("the database has no tables; run: cairn-server migrate".to_owned())
    } else {
        error.into()
    }
}

fn refuse(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause.into(),
        other => StoreError::Refused(other.to_string()),
    }
}

/// A statement whose text is made at run time from parts that are safe by their type.
pub(crate) fn statement(text: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(text)
}
