//! The process that started the shim. Some hosts are killed and leave their pipes open in others:
//! then no end of stdin says that nobody is there any more.

use std::os::unix::process::parent_id;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// How often it is looked for where the platform says nothing.
const CHECK: Duration = Duration::from_secs(30);

/// Whose end is the end.
pub struct Parent {
    id: u32,
}

impl Parent {
    /// The process that started this one, as far as it is still there.
    pub fn now() -> Self {
        Self { id: parent_id() }
    }

    /// Resolves once it is gone; at once where the platform tells, else within half a minute.
    pub async fn gone(self) {
        // Said of the thread that started us, which may end before its process: so it is only
        // a reason to look.
        let mut told = signal(SignalKind::user_defined2()).ok();
        #[cfg(target_os = "linux")]
        if told.is_some() {
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGUSR2).ok();
        }
        let mut check = tokio::time::interval(CHECK);
        loop {
            // Also before the first wait: it may have gone before anything could be told.
            if parent_id() != self.id {
                return;
            }
            let signalled = async {
                match &mut told {
                    Some(told) => drop(told.recv().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = signalled => {}
                _ = check.tick() => {}
            }
        }
    }
}

/// Resolves at the first signal that asks this program to end.
pub async fn asked_to_end() {
    let asked = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        // Then the system's own way to end a program is left.
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = asked(SignalKind::interrupt()) => {}
        () = asked(SignalKind::terminate()) => {}
        () = asked(SignalKind::hangup()) => {}
    }
}
