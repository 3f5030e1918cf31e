//! A connection that is given up when the other end takes nothing for too long: whoever stops
//! reading in the middle of an answer would else hold it, and what it holds, for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail after they have waited for so long.
pub struct Patient<T> {
    inner: T,
    patience: Duration,
    /// Runs while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<T> Patient<T> {
    /// A connection with this much patience.
    pub const fn new(inner: T, patience: Duration) -> Self {
        Self {
            inner,
            patience,
            waits: None,
        }
    }

    /// The outcome of a write, or of the wait for it.
    fn wait<O>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<O>>) -> Poll<io::Result<O>> {
        if write.is_ready() {
            self.waits = None;
            return write;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        waits
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wait(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.wait(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.inner).poll_flush(cx);
        self.wait(cx, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.wait(cx, shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let patience = Duration::from_millis(300);
        let (near, mut far) = duplex(8);
        let mut near = Patient::new(near, patience);
        let slow = async {
            let mut byte = [0];
            for _ in 0..40 {
                far.read_exact(&mut byte).await.expect("a byte");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[0; 48]), slow);
        written.expect("longer in all than its patience");
        let failed = near.write_all(&[0; 48]).await.expect_err("given up");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }
}
