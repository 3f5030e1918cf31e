//! Time on a processor, as the kernel counts it: what somebody else's load does not change.

use std::fs;

use anyhow::Context;

/// Nanoseconds that a process of one thread has run, as every backend of Postgres' is.
///
/// # Errors
/// If there is no such process.
pub fn of_thread(pid: u32) -> anyhow::Result<u64> {
    read(&format!("/proc/{pid}/schedstat"))
}

/// Nanoseconds that all threads of a process have run.
///
/// # Errors
/// If there is no such process.
pub fn of_process(pid: u32) -> anyhow::Result<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).context("a process's threads")?;
    let threads = tasks.flatten().map(|task| {
        // A thread may end while the others are looked at.
        read(&task.path().join("schedstat").to_string_lossy()).unwrap_or_default()
    });
    Ok(threads.sum())
}

/// Nanoseconds that the children of a process have run, those that are alive.
///
/// # Errors
/// If processes cannot be listed.
pub fn of_children(parent: u32) -> anyhow::Result<u64> {
    let processes = fs::read_dir("/proc").context("listing processes")?;
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let children = pids.filter(|pid| parent_of(*pid) == Some(parent));
    Ok(children.filter_map(|pid| of_thread(pid).ok()).sum())
}

/// The fourth word of `pid (name) state parent …`; the name may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The first word of `nanoseconds waited slices`.
fn read(path: &str) -> anyhow::Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    let first = text.split_whitespace().next();
    first
        .and_then(|word| word.parse().ok())
        .with_context(|| format!("{path} holds {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_where_it_is_done() {
        let own = std::process::id();
        let (before, mut sum) = (of_process(own).expect("counted"), 0_u64);
        for n in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(n));
        }
        assert!(of_process(own).expect("counted") > before, "{sum}");
        assert!(of_thread(u32::MAX).is_err());
    }

    #[test]
    fn children_are_told_from_others() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("started");
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        drop(child.stdin.take());
        child.wait().expect("ended");
    }
}
