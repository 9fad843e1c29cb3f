//! Callers that each send one task at a time and wait for its answer, as ikada's own are: over shared connections, with a
//! writer that sends whatever is there in one go.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Frames sent with one write.
const FRAMES_PER_WRITE: usize = 1_024;

/// A way to hand over one task.
pub(super) trait Caller: Send + Sync + 'static {
    /// Sends a task and waits until it is acknowledged.
    fn call(&self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Sends so many tasks with so many callers, spread over the connections.
pub(super) async fn call_all<C: Caller>(
    connections: Vec<Arc<C>>,
    callers: usize,
    total: u64,
) -> io::Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut calling = JoinSet::new();
    for caller in 0..callers {
        let (connection, next) = (connections[caller % connections.len()].clone(), next.clone());
        calling.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < total {
                connection.call().await?;
            }
            Ok::<(), io::Error>(())
        });
    }
    while let Some(ended) = calling.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}

/// Writes frames as they come, many at a time, until nobody sends any more.
pub(super) async fn write_frames(
    mut writer: OwnedWriteHalf,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    let (mut batch, mut bytes) = (Vec::with_capacity(FRAMES_PER_WRITE), Vec::new());
    while frames.recv_many(&mut batch, FRAMES_PER_WRITE).await > 0 {
        bytes.clear();
        batch.drain(..).for_each(|frame| bytes.extend_from_slice(&frame));
        // A connection that broke is told of by the reader.
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
