//! `admin purge`: removing for good, from the machine that runs the service.

use anyhow::{Context, bail};
use cairn_domain::kind::Kind;
use cairn_domain::project::ProjectSet;
use cairn_store::purge::{PurgeFilter, Purger};
use cairn_wire::export::counts_by_kind;
use cairn_wire::purge::PurgeAsk;
use chrono::{DateTime, Utc};
use clap::Args;

use super::{Operator, find_tenant};
use crate::actions::purge::{count_all, remove_all};

/// What the operator removes for good: what meets all that is named, private or not.
#[derive(Clone, Debug, Args)]
pub struct PurgeCommand {
    /// The tenant's name.
    tenant: String,
    /// Of this project: id, key or name; * for all.
    #[arg(long)]
    project: Option<String>,
    /// Of this author: a handle, or key:<key id>.
    #[arg(long)]
    author: Option<String>,
    /// What happened before this: 2026-10-10T00:00:00Z
    #[arg(long)]
    before: Option<DateTime<Utc>>,
    /// Of this kind; may be given several times.
    #[arg(long = "kind")]
    kinds: Vec<String>,
    /// Count, and remove nothing.
    #[arg(long)]
    dry_run: bool,
}

impl PurgeCommand {
    /// Does it; answers what is to be printed.
    ///
    /// # Errors
    /// If nothing is named, there is no such tenant, project or author, or the store is
    /// unavailable: then what was removed stays so, and another call goes on.
    pub async fn run(self, operator: &Operator<'_>) -> anyhow::Result<String> {
        let Operator { store, clock } = operator;
        let ask = PurgeAsk {
            project: self.project,
            author: self.author,
            before: self.before,
            kinds: self.kinds,
            dry_run: self.dry_run,
        };
        ask.check()?;
        let kinds = Kind::parse_all("/kinds", ask.kinds.iter().map(String::as_str))?;
        let tenant = find_tenant(store, &self.tenant).await?;
        let mut tx = store.tenant(tenant, "admin.purge").await?;
        let projects = match ask.project.as_deref() {
            None | Some("*") => ProjectSet::All,
            Some(text) => match tx.find_projects(text).await?.as_slice() {
                [family] => ProjectSet::Only(family.members.clone()),
                [] => bail!("there is no project {text:?}"),
                _ => bail!("{text:?} fits several projects; use a key or an id"),
            },
        };
        let author = match ask.author.as_deref() {
            Some(name) => {
                let author = tx.find_author(name).await?;
                Some(author.with_context(|| format!("there is no author {name:?}"))?)
            }
            None => None,
        };
        tx.commit().await?;
        let filter = PurgeFilter {
            projects,
            author,
            before: ask.before,
            kinds,
        };
        let purger = Purger {
            actor: None,
            asked: &ask.words(),
            at: clock.now(),
        };
        let counts = match ask.dry_run {
            true => count_all(store, tenant, &filter).await?,
            false => remove_all(store, tenant, &filter, purger, None).await?,
        };
        let counts = counts_by_kind(&counts).into_iter();
        let counts: Vec<String> = counts.map(|(kind, n)| format!("{kind} {n}")).collect();
        Ok(match counts.is_empty() {
            true => "nothing".to_owned(),
            false => counts.join(", "),
        })
    }
}
