//! Snapshots: compaction of the own log, and both sides of a transfer.
//!
//! Promises: snapshot messages carry a point and a membership, never data; a follower acknowledges a snapshot
//! only when it is installed and the log's restart is durable; one installation at a time.
//! Leaves out: the data, its chunks and its checks.

use raft::SnapshotStatus;

use super::Shard;
use super::roles::Cause;
use crate::conf::Conf;
use crate::config::{NodeId, Start};
use crate::message::{Message, MessageKind};

impl Shard {
    /// A snapshot at `start` is durable here.
    pub(crate) fn compact(&mut self, start: Start, conf: Conf) {
        // Entries below the first one at hand were applied here, so the snapshot cannot contradict them.
        let is_known = start.index + 1 < self.raw.raft.raft_log.first_index()
            || self.term_at(start.index) == Some(start.term);
        if self.installing.is_some() || !is_known {
            return;
        }
        // Only applied state can be in a snapshot.
        self.applied(start.index);
        let keep_bytes = self.keep_bytes;
        self.raw.mut_store().compact(start, conf, keep_bytes);
        let covering = self.confs.iter().rposition(|(index, _)| *index <= start.index);
        self.confs.drain(..covering.unwrap_or(0));
    }

    /// Lets go of entries in memory that are applied and durable here and, as far as a leader knows, on all peers. A peer
    /// that lacks some after all (a new leader has trimmed as a follower, who knows nothing of others) gets a snapshot.
    pub(super) fn trim(&mut self) {
        if self.installing.is_some() {
            return;
        }
        let engine = &self.raw.raft;
        let mut floor = engine.raft_log.applied;
        if self.is_leader() {
            let lowest = engine.prs().iter().map(|(_, progress)| progress.matched).min();
            floor = floor.min(lowest.unwrap_or(0));
        }
        let keep_bytes = self.keep_bytes;
        self.raw.mut_store().trim(floor, keep_bytes);
    }

    /// Leader: the transfer to a peer ended.
    pub(crate) fn snapshot_result(&mut self, to: NodeId, ok: bool) {
        if self.is_leader() {
            let status = if ok { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
            self.raw.report_snapshot(to, status);
            self.settle(Cause::Other);
        }
    }

    /// Follower: all data is here. True if the snapshot will be installed.
    pub(crate) fn snapshot_offered(&mut self, from: NodeId, message: Message) -> bool {
        let is_snapshot = message.kind == MessageKind::Snapshot;
        let is_busy = self.installing.is_some() || self.raw.snap().is_some();
        let is_rival = self.is_leader() && message.inner.term == self.raw.raft.term;
        if !is_snapshot || is_busy || is_rival {
            return false;
        }
        self.step(from, message);
        self.raw.snap().is_some()
    }

    /// Follower: the state at `start` is loaded and durable.
    pub(crate) fn snapshot_installed(&mut self, start: Start, _conf: Conf) {
        if self.installing.is_some_and(|index| index <= start.index) {
            self.installing = None;
            self.applied = self.applied.max(start.index);
            self.release();
        }
    }
}
