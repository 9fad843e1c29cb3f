//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// The node's own numbers, since its start unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of the log on disk, now.
    pub log_bytes: u64,
    /// Segments of the log, now.
    pub log_segments: u64,
    /// 1 while the log's disk has no room beyond what the log holds.
    pub disk_low: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Time spent in syncs.
    pub log_sync_micros: u64,
    /// Bytes appended to the log.
    pub log_appended_bytes: u64,
    /// Entries appended to the log.
    pub log_appended_entries: u64,
    /// Snapshots written.
    pub snapshots_saved: u64,
    /// Snapshots that could not be written.
    pub snapshots_failed: u64,
    /// Frames sent to peers.
    pub frames_sent: u64,
    /// Frames received from peers.
    pub frames_received: u64,
    /// Bytes sent to peers.
    pub bytes_sent: u64,
    /// Bytes received from peers.
    pub bytes_received: u64,
    /// Frames dropped because a peer's queue was full.
    pub frames_dropped: u64,
    /// Connections to peers that came about.
    pub peer_connects: u64,
    /// Connections to the peer port that showed no certificate of a node of this cluster.
    pub peers_refused: u64,
    /// Turns of the driver's loop.
    pub turns: u64,
    /// Time spent in turns, waiting excluded.
    pub turn_micros: u64,
    /// Calls begun.
    pub calls: u64,
    /// Spans that the collector of traces took.
    pub spans_sent: u64,
    /// Spans that were dropped.
    pub spans_dropped: u64,
    /// Role changes.
    pub role_changes: u64,
    /// The database that holds the logs: 0 well, 1 away, 2 full, 3 read-only.
    pub database_state: u64,
    /// Appends to a log in a database.
    pub database_appends: u64,
    /// Time that those took.
    pub database_append_micros: u64,
    /// Connections to the database that came about.
    pub database_connects: u64,
    /// Questions that the database did not answer, or refused.
    pub database_failures: u64,
}

/// The client door's own numbers.
#[derive(Debug, Default)]
pub struct HttpCounters {
    /// Answers by class: 1xx to 5xx.
    classes: [AtomicU64; 5],
    /// Requests refused because a bound was met (429 and 503).
    pub shed: AtomicU64,
    /// Handlers that panicked.
    pub panics: AtomicU64,
    /// Requests of strangers, and of callers that may not do what they asked for.
    pub denied: AtomicU64,
    /// 1 if the node listens beyond loopback without TLS and tokens.
    pub insecure: AtomicU64,
    /// Pipes that are open.
    pub pipes: AtomicU64,
    /// Connections turned away because the door was full.
    pub connections_refused: AtomicU64,
    /// Connections of strangers that were closed to make room.
    pub strangers_closed: AtomicU64,
    /// Connections that never came to TLS.
    pub handshakes_failed: AtomicU64,
}

impl HttpCounters {
    /// Counts an answer.
    pub fn count(&self, status: u16) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        if matches!(status, 429 | 503) {
            self.shed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers of a class, 1 to 5.
    pub fn class(&self, class: usize) -> u64 {
        self.classes[class.clamp(1, 5) - 1].load(Ordering::Relaxed)
    }
}
