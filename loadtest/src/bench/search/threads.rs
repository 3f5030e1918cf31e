//! How loading uses the machine's processors.

use std::thread::ScopedJoinHandle;

use anyhow::bail;

/// Threads that generate, and programs of the service's that make tenants at the same time.
pub const THREADS: usize = 2;

/// The end of a thread.
///
/// # Errors
/// That of the thread.
pub fn join<T>(thread: ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| bail!("a loading thread ended before its time"))
}
