//! Revisions: where projects stand, asked for once by all who want to know at the same moment.
//!
//! Whoever asks is answered by a statement that begins after the question: so nobody is told less
//! than was acknowledged before, and any number of readers cost one statement at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cairn_domain::ids::{ProjectId, TenantId};
use cairn_store::context::ContextRevision;
use cairn_store::{Store, StoreError};
use tokio::sync::oneshot;

use crate::actions::Failure;
use crate::lock::lock;

/// Projects in one statement.
const TOGETHER: usize = 500;

/// What a question is answered; an error says only that there is no answer.
type Answer = Result<Option<ContextRevision>, ()>;
type Asked = HashMap<(TenantId, ProjectId), Vec<oneshot::Sender<Answer>>>;

#[derive(Default)]
struct Waiting {
    asked: Asked,
    /// Whether somebody is on the way to answer. One is enough: those who ask meanwhile gather for
    /// its next statement, and two made smaller ones.
    is_served: bool,
}

/// Where projects stand.
pub(super) struct Revisions {
    store: Store,
    waiting: Arc<Mutex<Waiting>>,
}

impl Revisions {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            waiting: Arc::default(),
        }
    }

    /// At what revision the context of a project stands now; `None` if it is merged or gone.
    ///
    /// # Errors
    /// `store_unavailable` if the database does not tell.
    pub(super) async fn ask(
        &self,
        tenant: TenantId,
        project: ProjectId,
    ) -> Result<Option<ContextRevision>, Failure> {
        let (sender, answer) = oneshot::channel();
        let serve = {
            let mut waiting = lock(&self.waiting);
            waiting
                .asked
                .entry((tenant, project))
                .or_default()
                .push(sender);
            !std::mem::replace(&mut waiting.is_served, true)
        };
        if serve {
            let (store, waiting) = (self.store.clone(), Arc::clone(&self.waiting));
            tokio::spawn(serve_all(store, waiting));
        }
        match answer.await {
            Ok(Ok(revision)) => Ok(revision),
            Ok(Err(())) | Err(_) => Err(StoreError::Unavailable.into()),
        }
    }
}

/// Answers until nobody asks any more.
async fn serve_all(store: Store, waiting: Arc<Mutex<Waiting>>) {
    let mut server = Server {
        waiting,
        is_done: false,
    };
    loop {
        // Those who are about to ask, and only wait for a thread, ask together.
        tokio::task::yield_now().await;
        let asked = server.take();
        if asked.is_empty() {
            return;
        }
        let (wanted, waiting): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let told = store.context_revisions(&wanted).await.map_err(drop);
        let mut told = told.map(Vec::into_iter);
        for senders in waiting {
            let answer = match &mut told {
                Ok(revisions) => revisions.next().ok_or(()),
                Err(()) => Err(()),
            };
            for sender in senders {
                // Whoever has gone away wants no answer.
                let _ = sender.send(answer);
            }
        }
    }
}

/// Who answers.
struct Server {
    waiting: Arc<Mutex<Waiting>>,
    is_done: bool,
}

impl Server {
    /// What to answer next; nothing if it is done.
    fn take(&mut self) -> Asked {
        let mut waiting = lock(&self.waiting);
        let asked = take(&mut waiting.asked);
        if asked.is_empty() {
            waiting.is_served = false;
            self.is_done = true;
        }
        asked
    }
}

impl Drop for Server {
    /// One that ends before it is done leaves nobody waiting for it.
    fn drop(&mut self) {
        if !self.is_done {
            let mut waiting = lock(&self.waiting);
            waiting.is_served = false;
            waiting.asked.clear();
        }
    }
}

/// At most as many questions as one statement takes.
fn take(asked: &mut Asked) -> Asked {
    if asked.len() <= TOGETHER {
        return std::mem::take(asked);
    }
    let some: Vec<(TenantId, ProjectId)> = asked.keys().take(TOGETHER).copied().collect();
    some.into_iter()
        .filter_map(|key| asked.remove_entry(&key))
        .collect()
}
