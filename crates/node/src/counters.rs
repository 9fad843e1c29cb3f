//! Plain numbers that the threads of a node keep for its metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ikada_replica::DatabaseHealth;
use ikada_store::LogStats;

use crate::metrics::Counters;

#[derive(Debug, Default)]
struct Cells {
    log_bytes: AtomicU64,
    log_segments: AtomicU64,
    disk_low: AtomicU64,
    log_syncs: AtomicU64,
    log_sync_micros: AtomicU64,
    log_appended_bytes: AtomicU64,
    log_appended_entries: AtomicU64,
    snapshots_saved: AtomicU64,
    snapshots_failed: AtomicU64,
    frames_sent: AtomicU64,
    frames_received: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    frames_dropped: AtomicU64,
    peer_connects: AtomicU64,
    peers_refused: AtomicU64,
    turns: AtomicU64,
    turn_micros: AtomicU64,
    calls: AtomicU64,
    one_log: AtomicU64,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
    role_changes: AtomicU64,
    database_state: AtomicU64,
    database_appends: AtomicU64,
    database_append_micros: AtomicU64,
    database_connects: AtomicU64,
    database_failures: AtomicU64,
}

/// Counters shared by the threads of one node.
#[derive(Debug, Clone, Default)]
pub struct SharedCounters(Arc<Cells>);

impl SharedCounters {
    pub(crate) fn set_log(&self, stats: LogStats, sync: Duration) {
        let cells = &self.0;
        cells.log_bytes.store(stats.bytes, Relaxed);
        cells.log_segments.store(stats.segments, Relaxed);
        cells.log_syncs.store(stats.syncs, Relaxed);
        cells.log_appended_bytes.store(stats.appended_bytes, Relaxed);
        cells.log_appended_entries.store(stats.appended_records, Relaxed);
        cells.log_sync_micros.fetch_add(sync.as_micros() as u64, Relaxed);
    }

    /// Whether the log's disk has no room beyond what the log holds.
    pub(crate) fn set_disk_low(&self, is_low: bool) {
        self.0.disk_low.store(u64::from(is_low), Relaxed);
    }

    pub(crate) fn snapshot(&self, saved: bool) {
        let cell = if saved { &self.0.snapshots_saved } else { &self.0.snapshots_failed };
        cell.fetch_add(1, Relaxed);
    }

    pub(crate) fn frame_received(&self, bytes: usize) {
        self.0.frames_received.fetch_add(1, Relaxed);
        self.0.bytes_received.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn frame_sent(&self, bytes: usize) {
        self.0.frames_sent.fetch_add(1, Relaxed);
        self.0.bytes_sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn frame_dropped(&self) {
        self.0.frames_dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn peer_refused(&self) {
        self.0.peers_refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn peer_connected(&self) {
        self.0.peer_connects.fetch_add(1, Relaxed);
    }

    pub(crate) fn turn(&self, busy: Duration, role_changes: usize) {
        self.0.turns.fetch_add(1, Relaxed);
        self.0.turn_micros.fetch_add(busy.as_micros() as u64, Relaxed);
        self.0.role_changes.fetch_add(role_changes as u64, Relaxed);
    }

    /// Whether all of the cluster's work goes through one log: there is one shard.
    pub(crate) fn set_one_log(&self, one: bool) {
        self.0.one_log.store(u64::from(one), Relaxed);
    }

    pub(crate) fn one_log(&self) -> bool {
        self.0.one_log.load(Relaxed) == 1
    }

    pub(crate) fn call(&self) {
        self.0.calls.fetch_add(1, Relaxed);
    }

    /// Spans were taken by the collector, or dropped.
    pub(crate) fn traced(&self, spans: usize, sent: bool) {
        let cell = if sent { &self.0.spans_sent } else { &self.0.spans_dropped };
        cell.fetch_add(spans as u64, Relaxed);
    }

    /// The database took an append.
    pub(crate) fn database_appended(&self, took: Duration) {
        self.0.database_appends.fetch_add(1, Relaxed);
        self.0.database_append_micros.fetch_add(took.as_micros() as u64, Relaxed);
    }

    pub(crate) fn database_connected(&self) {
        self.0.database_connects.fetch_add(1, Relaxed);
    }

    pub(crate) fn database_failed(&self) {
        self.0.database_failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_database(&self, health: DatabaseHealth) {
        let state = match health {
            DatabaseHealth::Well => 0,
            DatabaseHealth::Away => 1,
            DatabaseHealth::Full => 2,
            DatabaseHealth::ReadOnly => 3,
        };
        self.0.database_state.store(state, Relaxed);
    }

    /// A reading of all of them.
    pub fn read(&self) -> Counters {
        let cells = &self.0;
        Counters {
            log_bytes: cells.log_bytes.load(Relaxed),
            log_segments: cells.log_segments.load(Relaxed),
            disk_low: cells.disk_low.load(Relaxed),
            log_syncs: cells.log_syncs.load(Relaxed),
            log_sync_micros: cells.log_sync_micros.load(Relaxed),
            log_appended_bytes: cells.log_appended_bytes.load(Relaxed),
            log_appended_entries: cells.log_appended_entries.load(Relaxed),
            snapshots_saved: cells.snapshots_saved.load(Relaxed),
            snapshots_failed: cells.snapshots_failed.load(Relaxed),
            frames_sent: cells.frames_sent.load(Relaxed),
            frames_received: cells.frames_received.load(Relaxed),
            bytes_sent: cells.bytes_sent.load(Relaxed),
            bytes_received: cells.bytes_received.load(Relaxed),
            frames_dropped: cells.frames_dropped.load(Relaxed),
            peer_connects: cells.peer_connects.load(Relaxed),
            peers_refused: cells.peers_refused.load(Relaxed),
            turns: cells.turns.load(Relaxed),
            turn_micros: cells.turn_micros.load(Relaxed),
            calls: cells.calls.load(Relaxed),
            spans_sent: cells.spans_sent.load(Relaxed),
            spans_dropped: cells.spans_dropped.load(Relaxed),
            role_changes: cells.role_changes.load(Relaxed),
            database_state: cells.database_state.load(Relaxed),
            database_appends: cells.database_appends.load(Relaxed),
            database_append_micros: cells.database_append_micros.load(Relaxed),
            database_connects: cells.database_connects.load(Relaxed),
            database_failures: cells.database_failures.load(Relaxed),
        }
    }
}
