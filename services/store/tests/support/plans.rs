//! The plans of statements as Postgres tells them: what they read cannot be seen from outside.

use std::sync::{Arc, Mutex};

use sqlx::{AssertSqlSafe, PgConnection};

/// From now on new sessions of the server's role tell the plan of every statement, also of those
/// inside functions, with the rows it read.
pub async fn explain_everything(admin: &mut PgConnection) {
    let database: String = sqlx::query_scalar("select quote_ident(current_database())")
        .fetch_one(&mut *admin)
        .await
        .expect("a name");
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_nested_statements = on",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_level = notice",
    ] {
        let sql = format!("alter role cairn_app in database {database} set {setting}");
        sqlx::raw_sql(AssertSqlSafe(format!("load 'auto_explain'; {sql}")))
            .execute(&mut *admin)
            .await
            .expect("set");
    }
}

/// Hears what Postgres tells its client.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    pub fn clear(&self) {
        self.0.lock().expect("no panic").clear();
    }

    /// Plans that read records, not those of the calls around them.
    pub fn plans_of_records(&self) -> Vec<String> {
        let heard = self.0.lock().expect("no panic");
        let reads = |plan: &&String| plan.contains(" on records");
        heard.iter().filter(reads).cloned().collect()
    }
}

impl tracing::Subscriber for Notices {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::postgres::notice"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        let mut note = |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!("{value:?}\n"));
        };
        event.record(&mut note);
        self.0.lock().expect("no panic").push(text);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
