//! What a connection may make this node hold before anybody has vouched for it (X7).
//!
//! Promise: at most [`STRANGER_BYTES_MAX`] for each, whatever is spoken on it and whatever was sent. Below TLS a [`Wire`]
//! counts what was read since the last words came through: a handshake message in pieces, or half a record, is held by
//! TLS until it is whole. Above it [`Words`] hands on a little at a time, so that buffers there stay small. Both are out of
//! the way once the connection is trusted.
//!
//! Leaves out: how many connections there are, and for how long; `places.rs` bounds that.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a stranger's connection may hold in all: its task, TLS, and what was read and not yet understood.
pub const STRANGER_BYTES_MAX: usize = 64 << 10;
/// Bytes read from the wire before words come of them. TLS holds them once as they came and once as certificates, so it
/// is well below half; a handshake with a chain of large certificates has 8 KiB.
const WIRE_BYTES_MAX: usize = 20 << 10;
/// Words handed on at one time. Less than what HTTP asks for, which would double its room after a full read.
const WORDS_BYTES_MAX: usize = (8 << 10) - 1;

/// What HTTP holds at most of words in parts: room for a head, doubled when it is nearly full.
const HEAD_ROOM_BYTES_MAX: usize = 32 << 10;
const _: () = assert!(
    WIRE_BYTES_MAX * 2 < STRANGER_BYTES_MAX
        && WIRE_BYTES_MAX + HEAD_ROOM_BYTES_MAX < STRANGER_BYTES_MAX,
    "what is held of a stranger does not fit"
);

/// What one connection may still take.
#[derive(Debug)]
pub struct Ration {
    wire_left: AtomicUsize,
    trusted: AtomicBool,
}

impl Ration {
    /// For a new connection.
    pub fn new() -> Arc<Ration> {
        let wire_left = AtomicUsize::new(WIRE_BYTES_MAX);
        Arc::new(Ration { wire_left, trusted: AtomicBool::new(false) })
    }

    /// Somebody has vouched for the connection: no more rations. True the first time.
    pub fn trust(&self) -> bool {
        !self.is_trusted() && !self.trusted.swap(true, Relaxed)
    }

    /// What was read so far has been understood.
    pub fn renew(&self) {
        self.wire_left.store(WIRE_BYTES_MAX, Relaxed);
    }

    fn is_trusted(&self) -> bool {
        self.trusted.load(Relaxed)
    }
}

/// Reads at most so much, in place.
fn read_part(
    inner: Pin<&mut impl AsyncRead>,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
    most: usize,
) -> Poll<io::Result<usize>> {
    // The part begins where the buffer is not filled; it is filled from there, so that nothing is copied.
    let unfilled = buffer.initialize_unfilled_to(most.min(buffer.remaining()));
    let mut part = ReadBuf::new(unfilled);
    ready!(inner.poll_read(context, &mut part))?;
    let count = part.filled().len();
    buffer.advance(count);
    Poll::Ready(Ok(count))
}

/// The connection below TLS.
#[derive(Debug)]
pub struct Wire<S> {
    inner: S,
    ration: Arc<Ration>,
}

/// The connection above TLS, or in the open.
#[derive(Debug)]
pub struct Words<S> {
    inner: S,
    ration: Arc<Ration>,
}

impl<S> Wire<S> {
    /// A connection under a ration.
    pub fn new(inner: S, ration: Arc<Ration>) -> Wire<S> {
        Wire { inner, ration }
    }
}

impl<S> Words<S> {
    /// A connection under a ration.
    pub fn new(inner: S, ration: Arc<Ration>) -> Words<S> {
        Words { inner, ration }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ration.is_trusted() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let left = self.ration.wire_left.load(Relaxed);
        if left == 0 {
            let what = "a stranger sent too much before saying anything";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        let count = ready!(read_part(Pin::new(&mut self.inner), context, buffer, left))?;
        self.ration.wire_left.store(left - count, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Words<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ration.is_trusted() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let inner = Pin::new(&mut self.inner);
        if ready!(read_part(inner, context, buffer, WORDS_BYTES_MAX))? > 0 {
            self.ration.renew();
        }
        Poll::Ready(Ok(()))
    }
}

macro_rules! write_through {
    ($stream:ident) => {
        impl<S: AsyncWrite + Unpin> AsyncWrite for $stream<S> {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.inner).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
            }

            fn is_write_vectored(&self) -> bool {
                self.inner.is_write_vectored()
            }

            fn poll_flush(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_flush(context)
            }

            fn poll_shutdown(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_shutdown(context)
            }
        }
    };
}

write_through!(Wire);
write_through!(Words);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Reads to the end in large steps; gives the largest step and how it ended.
    async fn steps(mut stream: impl AsyncRead + Unpin) -> (usize, usize, bool) {
        let (mut all, mut largest, mut buffer) = (0, 0, vec![0; 1 << 16]);
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return (all, largest, true),
                Ok(count) => (all, largest) = (all + count, largest.max(count)),
                Err(_) => return (all, largest, false),
            }
        }
    }

    #[tokio::test]
    async fn x_7_a_stranger_is_read_up_to_its_ration_and_a_friend_to_the_end() {
        let sent = vec![7; 1 << 17];
        let wire = Wire::new(sent.as_slice(), Ration::new());
        assert_eq!(steps(wire).await, (WIRE_BYTES_MAX, WIRE_BYTES_MAX, false));
        let friend = Ration::new();
        assert!(friend.trust() && !friend.trust());
        assert_eq!(steps(Wire::new(sent.as_slice(), friend)).await, (1 << 17, 1 << 16, true));
    }

    #[tokio::test]
    async fn x_7_words_come_in_small_parts_and_renew_the_ration() {
        let sent = vec![7; 1 << 17];
        let ration = Ration::new();
        let wire = Wire::new(sent.as_slice(), ration.clone());
        let (all, largest, whole) = steps(Words::new(wire, ration)).await;
        assert_eq!((all, whole), (1 << 17, true), "words that are understood may go on");
        assert!(largest <= WORDS_BYTES_MAX, "{largest}");
    }
}
