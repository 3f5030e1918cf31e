//! The shim: an MCP server on standard input and output that forwards to the service.
//!
//! It carries messages and knows as little of MCP as it can, so that every revision passes.
//! Nothing but JSON-RPC is ever written to stdout.

mod answer;
mod bridge;
mod message;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api;
use crate::exit::Failure;
use bridge::Bridge;
use message::Message;

/// How long answers on their way are waited for once stdin has ended.
const GRACE: Duration = Duration::from_millis(700);

/// How often the parent is looked for.
const PARENT_CHECK: Duration = Duration::from_secs(30);

/// Serves until standard input ends or the parent is gone.
///
/// # Errors
/// [`Failure::Failed`] if this machine cannot make connections at all.
pub fn run() -> Result<(), Failure> {
    let bridge = Arc::new(Bridge::new()?);
    api::block_on(async {
        serve(&bridge, read_lines()).await;
        Ok(())
    })
}

/// Lines of stdin. They come from a thread, because a read cannot be given up.
fn read_lines() -> mpsc::Receiver<Vec<u8>> {
    let (sender, lines) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        // An error of the pipe ends the input just as its end does.
        while let Ok(1..) = stdin.read_until(b'\n', &mut line) {
            if sender.blocking_send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

async fn serve(bridge: &Arc<Bridge>, mut lines: mpsc::Receiver<Vec<u8>>) {
    let parent = std::os::unix::process::parent_id();
    let mut check = tokio::time::interval(PARENT_CHECK);
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => accept(bridge, &line, &mut calls),
                None => break,
            },
            _ = check.tick() => {
                if std::os::unix::process::parent_id() != parent {
                    return;
                }
            }
            Some(_) = calls.join_next() => {}
        }
    }
    // The host is gone or going: nobody waits for more than is nearly there.
    drop(tokio::time::timeout(GRACE, async { while calls.join_next().await.is_some() {} }).await);
}

/// Starts what a line asks for.
fn accept(bridge: &Arc<Bridge>, line: &[u8], calls: &mut JoinSet<()>) {
    let line = line
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii();
    if line.is_empty() {
        return;
    }
    match Message::parse(line) {
        Ok(message) => {
            let bridge = Arc::clone(bridge);
            let fault = answer::failed(&message, "internal - a fault of the client");
            let call = async move { bridge.forward(&message).await };
            calls.spawn(async move {
                if let Some(answer) = guarded(call, fault).await {
                    write_line(&answer);
                }
            });
        }
        Err(refusal) => write_line(&refusal),
    }
}

/// What a call answers; a fault of this program becomes an error for the call, not the end.
async fn guarded(
    call: impl Future<Output = Option<String>> + Send + 'static,
    fault: Option<String>,
) -> Option<String> {
    tokio::spawn(call).await.unwrap_or(fault)
}

/// Writes an answer as one line, whole.
fn write_line(answer: &str) {
    let mut stdout = std::io::stdout().lock();
    // A host that is gone also closes stdin, which ends the program.
    drop(writeln!(stdout, "{answer}").and_then(|()| stdout.flush()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c053_a_fault_inside_a_call_is_an_error_for_it_and_the_next_call_works() {
        let calls = api::block_on(async {
            let fault = Some("fault".to_owned());
            let first = guarded(async { panic!("forced") }, fault.clone()).await;
            let second = guarded(async { Some("ok".to_owned()) }, fault).await;
            Ok((first, second))
        });
        let (first, second) = calls.expect("a queue");
        assert_eq!(
            (first.as_deref(), second.as_deref()),
            (Some("fault"), Some("ok"))
        );
    }
}
