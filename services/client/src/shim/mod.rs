//! The shim: an MCP server on standard input and output that forwards to the service.
//!
//! It carries messages and knows as little of MCP as it can, so that every revision passes.
//! Nothing but JSON-RPC is ever written to stdout.

mod answer;
mod bridge;
mod local;
mod message;
mod parent;
mod work_state;

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use cairn_wire::domain::limits;

use crate::api;
use crate::exit::Failure;
use bridge::Bridge;
use message::Message;
use parent::Parent;

/// How long answers on their way are waited for once stdin has ended.
const GRACE: Duration = Duration::from_millis(700);

/// How long a call may take, from its line to its answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Calls at the service at once.
const CALLS: usize = 32;

/// Calls at the service and those that wait for their turn; the next one is refused. Lines are
/// read on all the same, so that the end of stdin is seen.
const ACCEPTED: usize = 4 * CALLS;

/// Bytes of a line: more than that the service would not take.
const LINE_BYTES: usize = limits::BODY_BYTES;

/// What a line that is too long gets.
const TOO_LONG: &str = "Invalid Request: the line is longer than 2 MiB";

/// Serves until standard input ends, the parent is gone or a signal comes.
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

/// Lines of stdin; `None` for one that is too long. They come from a thread, because a read
/// cannot be given up.
fn read_lines() -> mpsc::Receiver<Option<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        // An error of the pipe ends the input just as its end does.
        while let Ok(Some(line)) = read_line(&mut stdin) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// The next line, if there is one; `None` inside for one that is too long and was skipped.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Option<Vec<u8>>>> {
    let mut line = Vec::new();
    let limit = LINE_BYTES as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || line.len() <= LINE_BYTES {
        return Ok(Some(Some(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(None))
}

async fn serve(bridge: &Arc<Bridge>, mut lines: mpsc::Receiver<Option<Vec<u8>>>) {
    let gone = Parent::now().gone();
    let told = parent::asked_to_end();
    tokio::pin!(gone, told);
    let mut calls = Calls::default();
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(Some(line)) => calls.accept(bridge, &line),
                Some(None) => write_line(&answer::error("null", -32600, TOO_LONG)),
                None => break,
            },
            // There is nobody to answer to.
            () = &mut gone => return,
            () = &mut told => return,
            Some(_) = calls.running.join_next() => {}
        }
    }
    // The host is gone or going: nobody waits for more than is nearly there.
    let ends = async { while calls.running.join_next().await.is_some() {} };
    tokio::select! {
        () = ends => {}
        () = tokio::time::sleep(GRACE) => {}
        () = &mut gone => {}
        () = &mut told => {}
    }
}

/// Calls under way and waiting.
struct Calls {
    running: JoinSet<()>,
    turns: Arc<Semaphore>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            running: JoinSet::new(),
            turns: Arc::new(Semaphore::new(CALLS)),
        }
    }
}

impl Calls {
    /// Starts what a line asks for.
    fn accept(&mut self, bridge: &Arc<Bridge>, line: &[u8]) {
        let line = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(line)
            .trim_ascii();
        if line.is_empty() {
            return;
        }
        let message = match Message::parse(line) {
            Ok(message) => message,
            Err(refusal) => return write_line(&refusal),
        };
        let is_full = self.running.len() >= ACCEPTED;
        let text = format!("overloaded - {ACCEPTED} calls are waiting; try again");
        let refused = || is_full.then(|| answer::failed(&message, &text)).flatten();
        match local::at_once(&message).or_else(refused) {
            Some(answer) => write_line(&answer),
            // A notification that comes too much has no answer.
            None if is_full => {}
            None => self.start(bridge, message),
        }
    }

    fn start(&mut self, bridge: &Arc<Bridge>, message: Message) {
        let bridge = Arc::clone(bridge);
        let turns = Arc::clone(&self.turns);
        let fault = answer::failed(&message, "internal - a fault of the client");
        let late = answer::failed(&message, "service_unreachable - no answer in time");
        let call = async move {
            let answer = async {
                // What a host asks first must not wait for other conversations.
                let _turn = match local::can_answer(&message) {
                    true => None,
                    false => turns.acquire().await.ok(),
                };
                bridge.forward(&message).await
            };
            tokio::time::timeout(DEADLINE, answer).await.unwrap_or(late)
        };
        self.running.spawn(async move {
            if let Some(answer) = guarded(call, fault).await {
                write_line(&answer);
            }
        });
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
    fn a_line_that_is_too_long_is_skipped_to_its_end() {
        let long = "x".repeat(LINE_BYTES);
        let text = format!("a\n{long}\n{long}x\n{long}{long}\nb");
        let mut input = io::BufReader::new(text.as_bytes());
        let mut lengths = Vec::new();
        while let Some(line) = read_line(&mut input).expect("reads") {
            lengths.push(line.map(|line| line.len()));
        }
        assert_eq!(
            lengths,
            [Some(2), Some(LINE_BYTES + 1), None, None, Some(1)]
        );
    }

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
