//! Answers on their way out of a pipe, and the writer that sends them.
//!
//! Promise: whoever asks [`Outlet::is_full`] before it begins a call keeps a client that sends and never reads from filling
//! this node's memory: beyond the bound only calls that were under way already add to what waits. A client that takes
//! nothing for a whole [`STALL_PATIENCE`] loses its pipe.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Encoded answers that may wait for a client to read: the answers of all calls that may be in flight, and more.
pub(super) const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Pieces sent with one write.
const PIECES_PER_WRITE: usize = 1_024;
/// How long a client may take nothing at all.
const STALL_PATIENCE: Duration = Duration::from_secs(60);

/// Where answers are handed in.
#[derive(Clone)]
pub(super) struct Outlet {
    encoded: mpsc::UnboundedSender<Vec<u8>>,
    unsent: Arc<Unsent>,
}

/// What was handed in and is not with the kernel yet.
#[derive(Default)]
struct Unsent {
    bytes: AtomicUsize,
    fell: Notify,
}

/// The other end, for [`write_answers`].
pub(super) struct Answers {
    encoded: mpsc::UnboundedReceiver<Vec<u8>>,
    unsent: Arc<Unsent>,
}

/// An outlet and what comes out of it.
pub(super) fn outlet() -> (Outlet, Answers) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let unsent = Arc::<Unsent>::default();
    (Outlet { encoded: sender, unsent: unsent.clone() }, Answers { encoded: receiver, unsent })
}

impl Outlet {
    pub(super) fn send(&self, answers: Vec<u8>) {
        if !answers.is_empty() {
            self.unsent.bytes.fetch_add(answers.len(), Ordering::Relaxed);
            // A writer that is gone means that the client is; the pipe notices.
            let _ = self.encoded.send(answers);
        }
    }

    /// Whether so much waits that no further call should begin.
    pub(super) fn is_full(&self) -> bool {
        self.unsent.bytes.load(Ordering::Relaxed) >= UNSENT_BYTES_MAX
    }

    /// Done when something was sent, or when the client is gone: then it is false.
    pub(super) async fn fell(&self) -> bool {
        tokio::select! {
            () = self.unsent.fell.notified() => true,
            () = self.encoded.closed() => false,
        }
    }
}

/// Sends answers as they come, many in one go, until all outlets are gone or the client is.
pub(super) async fn write_answers(mut writer: impl AsyncWrite + Unpin, answers: Answers) {
    let Answers { mut encoded, unsent } = answers;
    let mut pieces = Vec::with_capacity(PIECES_PER_WRITE);
    while encoded.recv_many(&mut pieces, PIECES_PER_WRITE).await > 0 {
        let bytes = if pieces.len() == 1 { pieces.swap_remove(0) } else { pieces.concat() };
        pieces.clear();
        if !write_whole(&mut writer, &bytes).await {
            return;
        }
        unsent.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        unsent.fell.notify_one();
    }
    let _ = tokio::time::timeout(STALL_PATIENCE, writer.shutdown()).await;
}

/// False if the client is gone, or takes nothing.
async fn write_whole(writer: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match tokio::time::timeout(STALL_PATIENCE, writer.write(bytes)).await {
            Ok(Ok(count)) if count > 0 => bytes = &bytes[count..],
            _ => return false,
        }
    }
    // What TLS has in hand goes out with it.
    matches!(tokio::time::timeout(STALL_PATIENCE, writer.flush()).await, Ok(Ok(())))
}
