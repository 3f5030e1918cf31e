//! Searches with what the service sent to Postgres for each, so that the same statements can be
//! run elsewhere.

use std::fmt::Write as _;

use anyhow::{Context, bail};

use super::mix::Case;
use crate::api::Api;
use crate::bench::against::capture;
use crate::bench::capture::{self, Statement, Variables};
use crate::bench::operation::Operation;
use crate::bench::rig::Rig;

/// What the statements of a search are about, beside finding out where the caller is.
const SEARCHES: [&str; 3] = ["search_", "records", "terms"];

/// A search as the service ran it.
pub struct Captured {
    /// What was asked.
    pub case: Case,
    /// All that was sent.
    pub statements: Vec<Statement>,
}

/// Asks each search once and notes what was sent.
///
/// # Errors
/// If one is refused, or sends nothing that searches.
pub async fn searches(rig: &Rig, api: &Api, cases: Vec<Case>) -> anyhow::Result<Vec<Captured>> {
    let operations: Vec<Operation> = cases.iter().map(Case::operation).collect();
    let sent = capture(rig, api, &operations).await?;
    let mut captured = Vec::with_capacity(cases.len());
    for (case, (statements, _)) in cases.into_iter().zip(sent) {
        let one = Captured { case, statements };
        if one.searches().next().is_none() {
            bail!("{:?} sent no statement that searches", one.case.words);
        }
        captured.push(one);
    }
    Ok(captured)
}

impl Captured {
    /// The statements that search.
    pub fn searches(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(|statement| {
            let text = statement.text.trim_start().to_lowercase();
            let is_query = text.starts_with("select") || text.starts_with("with");
            is_query && SEARCHES.iter().any(|noun| text.contains(noun))
        })
    }

    /// What the transaction of the search was set to, but for the time that a statement may take:
    /// where it runs elsewhere it is to come to its end.
    ///
    /// # Errors
    /// If it began with no settings.
    pub fn settings(&self) -> anyhow::Result<Vec<(&str, &str)>> {
        let texts = self.statements.iter().map(|one| one.text.as_str());
        let mut all = texts.map(capture::settings);
        let mut settings = all
            .find(|settings| !settings.is_empty())
            .context("a search without a tenant")?;
        settings.retain(|(name, _)| *name != "statement_timeout");
        Ok(settings)
    }

    /// A script for pgbench of all that was sent.
    pub fn script(&self, variables: &mut Variables) -> String {
        capture::script(&self.statements, None, variables)
    }

    /// A script of the statements that search, set to what their transaction was set to, and to
    /// `more`.
    ///
    /// # Errors
    /// As [`Self::settings`].
    pub fn searches_script(
        &self,
        more: &[(&str, &str)],
        variables: &mut Variables,
    ) -> anyhow::Result<String> {
        let mut script = self.settings_script(more)?;
        let searches: Vec<Statement> = self.searches().cloned().collect();
        script.push_str(&capture::script(&searches, None, variables));
        Ok(script)
    }

    /// Statements that set a connection to what the search's transaction was set to, and to
    /// `more`.
    ///
    /// # Errors
    /// As [`Self::settings`].
    pub fn settings_script(&self, more: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut script = String::new();
        for (name, value) in self.settings()?.iter().chain(more) {
            let _ = writeln!(script, "set {name} = {value};");
        }
        Ok(script)
    }
}
