//! The one way to take a lock of this crate: what a lock guards is whole at every point where
//! something could panic, so that a lock that was left by a panic is as good as any.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the lock.
pub fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
