//! Contexts that are kept: rendered once for all who see the same, served as long as the project
//! stands at the revision they were rendered at, never by a timer (contract 6.8).
//!
//! What is kept here is only spared work: each answer first asks the database at which revision
//! the project stands, so that a read which starts after an acknowledged write shows it, on every
//! replica.

mod revisions;

use std::sync::Arc;

use cairn_domain::ids::TenantId;
use cairn_domain::project::{Family, fold};
use cairn_domain::template::Template;
use cairn_store::Store;
use cairn_store::context::ContextRevision;
use cairn_store::context_cache::ContextCache;
use cairn_wire::context::{ContextAsk, Format};
use chrono::{DateTime, Utc};
use moka::future::Cache;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::actions::Failure;
use crate::auth::Caller;
use revisions::Revisions;

/// Bytes of contexts in this process; the least used go first.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;
/// Places that are remembered: each is one reader in one project.
const PLACES: u64 = 20_000;

/// A rendered context, its hour left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rendered {
    /// Its parts with their names, in the order in which they are printed.
    pub parts: Vec<(String, Template)>,
    /// The highest moment of the work state in it, `<ms>.<counter>`.
    pub hlc: Option<String>,
}

/// Which context: two that differ in any of this may read differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextKey {
    tenant: TenantId,
    project: i32,
    revision: ContextRevision,
    /// The principal, if they see private records of their own; all others see the same.
    viewer: Option<i32>,
    /// The question, as it was understood.
    ask: ContextAsk,
}

impl ContextKey {
    /// About how many bytes it keeps in memory, with the keep's own account of it.
    fn bytes(&self) -> usize {
        const ACCOUNT: usize = 256;
        let path = match &self.ask.format {
            Format::Table(Some(path)) | Format::Overview(Some(path)) => path.len(),
            _ => 0,
        };
        let selection = &self.ask.selection;
        ACCOUNT + size_of::<Self>() + path + selection.types.len() + selection.concepts.len()
    }

    /// The name under which all replicas know it. A version that renders differently has others.
    fn name(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let Self {
            project,
            revision,
            viewer,
            ask,
            ..
        } = self;
        let ContextRevision {
            project: at,
            settings,
        } = revision;
        format!("{version} {project} {at} {settings} {viewer:?} {ask:?}")
    }
}

/// A project as a reader named it, at the revision at which it was found.
#[derive(Clone, Debug)]
pub struct Known {
    /// The project, with what was merged into it.
    pub family: Family,
    /// Where it stood.
    pub revision: ContextRevision,
    /// Whether the reader sees private records of their own.
    pub is_own: bool,
}

/// Who named which project how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlaceKey {
    tenant: TenantId,
    principal: i32,
    limit: Option<i32>,
    text: String,
}

/// What this replica keeps.
pub struct Contexts {
    kept: Cache<ContextKey, Arc<Rendered>>,
    places: Cache<PlaceKey, Arc<Known>>,
    revisions: Revisions,
    shared: Option<ContextCache>,
}

impl Contexts {
    /// An empty keep; `shared` is what all replicas have, if there is more than this one.
    #[must_use]
    pub fn new(store: Store, shared: Option<ContextCache>) -> Self {
        let weight = |key: &ContextKey, rendered: &Arc<Rendered>| {
            let parts = rendered.parts.iter().map(|(_, template)| template.bytes());
            u32::try_from(key.bytes() + parts.sum::<usize>()).unwrap_or(u32::MAX)
        };
        Self {
            kept: Cache::builder()
                .max_capacity(KEPT_BYTES)
                .weigher(weight)
                .build(),
            places: Cache::builder().max_capacity(PLACES).build(),
            revisions: Revisions::new(store),
            shared,
        }
    }

    /// The place that a caller names, if it is known and nothing has changed there since.
    ///
    /// # Errors
    /// `store_unavailable` if the database does not tell.
    pub async fn find(&self, caller: &Caller, text: &str) -> Result<Option<Arc<Known>>, Failure> {
        let Some(known) = self.places.get(&place_key(caller, text)).await else {
            return Ok(None);
        };
        let now = self
            .revisions
            .ask(caller.tenant, known.family.project.id)
            .await?;
        Ok((now == Some(known.revision)).then_some(known))
    }

    /// Remembers a place that was named by key or id. A name may come to mean another project
    /// without a change of this one.
    pub async fn note(&self, caller: &Caller, text: &str, known: Arc<Known>) {
        let is_id = text.trim().parse() == Ok::<Uuid, _>(known.family.project.id.uuid);
        if is_id || fold(text) == fold(&known.family.project.key) {
            self.places.insert(place_key(caller, text), known).await;
        }
    }

    /// The context of a place, as it is kept or as `render` makes it now. Those who want the same
    /// meanwhile wait for it; a failure is theirs too, and not kept.
    ///
    /// # Errors
    /// Those of `render`.
    pub async fn get_or_render<F>(
        &self,
        caller: &Caller,
        known: &Known,
        ask: ContextAsk,
        now: DateTime<Utc>,
        render: impl FnOnce() -> F,
    ) -> Result<Arc<Rendered>, Failure>
    where
        F: Future<Output = Result<Rendered, Failure>>,
    {
        let key = ContextKey {
            tenant: caller.tenant,
            project: known.family.project.id.key,
            revision: known.revision,
            viewer: known.is_own.then_some(caller.principal.key),
            ask,
        };
        if let Some(kept) = self.kept.get(&key).await {
            return Ok(kept);
        }
        let name = key.name();
        let make = async {
            if let Some(found) = self.load(caller.tenant, &name, now).await {
                return Ok(Arc::new(found));
            }
            let rendered = Arc::new(render().await?);
            self.save(caller.tenant, name.clone(), &rendered, now);
            Ok(rendered)
        };
        // Rendering is rare and its state large: apart, it does not weigh on every request.
        let made = Box::pin(self.kept.try_get_with(key, make)).await;
        made.map_err(|failure: Arc<Failure>| failure.shared())
    }

    async fn load(&self, tenant: TenantId, name: &str, now: DateTime<Utc>) -> Option<Rendered> {
        let kept = self.shared.as_ref()?.load(tenant, name, now).await?;
        // What another version wrote in another form is rendered anew.
        serde_json::from_slice(&kept).ok()
    }

    /// Gives a context to the other replicas. Nobody waits for it.
    fn save(&self, tenant: TenantId, name: String, rendered: &Arc<Rendered>, now: DateTime<Utc>) {
        let Some(shared) = self.shared.clone() else {
            return;
        };
        let rendered = Arc::clone(rendered);
        tokio::spawn(async move {
            if let Ok(value) = serde_json::to_vec(&*rendered) {
                shared.save(tenant, &name, &value, now).await;
            }
        });
    }
}

fn place_key(caller: &Caller, text: &str) -> PlaceKey {
    PlaceKey {
        tenant: caller.tenant,
        principal: caller.principal.key,
        limit: caller.project_limit.as_ref().map(|project| project.id.key),
        text: text.to_owned(),
    }
}
