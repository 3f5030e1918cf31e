//! App: all that requests share. No state of a request or of a search lives here: any replica
//! answers any step.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_domain::ids::TenantId;
use cairn_store::Store;
use cairn_store::bus::Message;
use cairn_store::context_cache::ContextCache;
use cairn_store::continuations::Continuations;
use chrono::{DateTime, Utc};
use tokio::sync::broadcast::error::RecvError;

use crate::auth::CredentialCache;
use crate::auth::attempts::{GoodCredentials, Lookups};
use crate::contexts::Contexts;
use crate::exports::Exports;
use crate::guards::Guards;
use crate::oauth::SignIn;
use crate::rates::CallerRates;
use crate::streams::Streams;
use crate::usage::Usage;

/// What the whole process shares.
pub struct App {
    /// Postgres.
    pub store: Store,
    /// Redis, or memory when embedded.
    pub continuations: Continuations,
    /// Contexts that are kept.
    pub contexts: Contexts,
    /// The time.
    pub clock: Clock,
    /// Credentials seen in the last five seconds.
    pub credentials: CredentialCache,
    /// Streams that are open.
    pub streams: Streams,
    /// Which hosts and sites may call.
    pub door: Door,
    /// How fast callers may go.
    pub callers: CallerRates,
    /// Credentials that were good within the last hour.
    pub good_credentials: GoodCredentials,
    /// Credentials that are being looked up.
    pub lookups: Lookups,
    /// How often a guard acted.
    pub guards: Guards,
    /// Requests that wait to be counted.
    pub usage: Usage,
    /// Exports under way.
    pub exports: Arc<Exports>,
    /// How members let programs in.
    pub sign_in: SignIn,
    draining: AtomicBool,
}

impl App {
    /// An app over its stores whose callers meet no limit of speed.
    #[must_use]
    pub fn new(
        store: Store,
        continuations: Continuations,
        shared: Option<ContextCache>,
        clock: Clock,
        door: Door,
        sign_in: SignIn,
    ) -> Arc<Self> {
        let callers = CallerRates::none();
        Self::limited(store, continuations, shared, clock, door, sign_in, callers)
    }

    /// An app over its stores; `shared` is where replicas keep contexts for each other, `callers`
    /// how fast whoever calls may go.
    #[must_use]
    pub fn limited(
        store: Store,
        continuations: Continuations,
        shared: Option<ContextCache>,
        clock: Clock,
        door: Door,
        sign_in: SignIn,
        callers: CallerRates,
    ) -> Arc<Self> {
        Arc::new(Self {
            contexts: Contexts::new(store.clone(), shared),
            streams: Streams::new(store.clone()),
            store,
            continuations,
            clock,
            credentials: CredentialCache::new(),
            door,
            callers,
            good_credentials: GoodCredentials::default(),
            lookups: Lookups::default(),
            guards: Guards::default(),
            usage: Usage::default(),
            exports: Arc::default(),
            sign_in,
            draining: AtomicBool::new(false),
        })
    }

    /// To be called once a change of keys, grants, members or roles is committed: from here on
    /// nobody is let in by what was known before, here at once and on the other replicas as soon
    /// as they hear of it.
    pub fn rights_changed(&self, tenant: TenantId) {
        self.credentials.forget(tenant.uuid());
        let told = Message::RightsChanged(tenant.uuid());
        self.store.bus().publish(told);
    }

    /// Does what the messages of all replicas ask for, until it is dropped.
    pub async fn listen(&self) {
        let mut messages = self.store.bus().subscribe();
        loop {
            match messages.recv().await {
                Ok(Message::RightsChanged(tenant)) => {
                    self.credentials.forget(tenant);
                    self.streams.rights_changed(tenant);
                }
                Ok(Message::Moved(tenant)) => self.streams.wake(tenant),
                Ok(Message::Answered(stream)) => self.streams.answered(stream),
                Err(RecvError::Closed) => return,
                // One that was lost may have been any, and one that is not known means nothing.
                Ok(Message::Missed) | Err(RecvError::Lagged(_)) => {
                    self.credentials.forget_all();
                    self.streams.wake_all();
                }
                Ok(_) => {}
            }
        }
    }

    /// Whether the process is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Makes `/readyz` say no, so that a balancer sends nobody here any more.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}

/// Names under which the service may be called; guards against DNS rebinding.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Host names, without port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub origins: Vec<String>,
}

/// The time, as a parameter: tests stand it still.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that asks the system"
        )]
        Self(Arc::new(Utc::now))
    }

    /// Any other clock.
    pub fn of(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time by this clock.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
