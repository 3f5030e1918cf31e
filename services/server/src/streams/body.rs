//! The body of a stream: pieces of text as its follower hands them over, one at a time, so that
//! nothing is read for a connection that takes nothing; and a last one, for which nobody waits.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame};
use tokio::sync::mpsc;

use crate::lock::lock;

/// What a stream says.
pub struct Body {
    lines: mpsc::Receiver<Bytes>,
    last: Arc<Mutex<Option<Bytes>>>,
}

/// The follower's end of a body.
pub(super) struct Lines {
    /// Takes one piece at a time.
    pub sender: mpsc::Sender<Bytes>,
    last: Arc<Mutex<Option<Bytes>>>,
}

/// A body and its other end.
pub(super) fn channel() -> (Body, Lines) {
    let (sender, lines) = mpsc::channel(1);
    let last = Arc::default();
    let body = Body {
        lines,
        last: Arc::clone(&last),
    };
    (body, Lines { sender, last })
}

impl Lines {
    /// Ends the body with this piece, after what was handed over before.
    pub fn end(self, piece: Bytes) {
        *lock(&self.last) = Some(piece);
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = std::task::ready!(self.lines.poll_recv(cx));
        let next = next.or_else(|| lock(&self.last).take());
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }
}
