//! The writing half of a client's connection, under its pace (X7).
//!
//! Promise: whoever asks for bytes and does not take them loses the connection, and with it what is held for it: its place
//! among the downloads, the piece on its way. Once all that was written is gone, the client owes nothing.
//!
//! Leaves out: reading, which has bounds of its own for heads and for bodies.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::pace::Pace;

/// A connection whose client must take what it asked for.
pub(super) struct Outflow<S> {
    inner: S,
    pace: Pace,
    patience: Duration,
    /// Since when nothing could be written, and the end of it; on the heap, since most connections are never there.
    blocked: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Outflow<S> {
    /// A client is waited for so long, and longer as it takes bytes.
    pub(super) fn new(inner: S, patience: Duration) -> Outflow<S> {
        Outflow { inner, pace: Pace::new(patience), patience, blocked: None }
    }

    /// Nothing can be written now; an error once that took too long.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let left = self.pace.left();
        let (_, end) = self
            .blocked
            .get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        ready!(end.as_mut().poll(context));
        let what = "the client does not take what it asked for";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
    }

    /// So many bytes could be written.
    fn went(&mut self, bytes: usize) {
        let waited = self.blocked.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        self.pace.went(waited, bytes);
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.wait(context),
            Poll::Ready(written) => {
                self.went(*written.as_ref().unwrap_or(&0));
                Poll::Ready(written)
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outflow<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Outflow<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_flush(context) {
            Poll::Pending => self.wait(context),
            Poll::Ready(flushed) => {
                (self.blocked, self.pace) = (None, Pace::new(self.patience));
                Poll::Ready(flushed)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_shutdown(context) {
            Poll::Pending => self.wait(context),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn x_7_whoever_takes_nothing_is_cut_off_and_whoever_reads_is_not() {
        let patience = Duration::from_millis(50);
        let (here, mut there) = tokio::io::duplex(1 << 10);
        let mut stream = Outflow::new(here, patience);
        let cut = stream.write_all(&[7; 4 << 10]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        // It reads after all.
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            there.read_to_end(&mut all).await.map(|_| all.len())
        });
        let mut stream = Outflow::new(stream.inner, Duration::from_secs(60));
        stream.write_all(&[7; 64 << 10]).await.unwrap();
        stream.flush().await.unwrap();
        drop(stream);
        assert_eq!(reading.await.unwrap().unwrap(), (64 << 10) + (1 << 10));
    }
}
