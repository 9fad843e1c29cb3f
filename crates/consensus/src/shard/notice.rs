//! Tells followers how far the log is committed.
//!
//! Promise: the next append carries it, so under load it costs nothing; where none follows within [`WAIT_MS`] an empty one
//! is sent. Told at once, as the engine would, every commit costs a second round of messages, whose only use is that
//! followers apply a moment sooner. A notice that is lost is made good by the next heartbeat. Changes of membership are
//! still told at once, by the engine itself; reads on followers bring their own point with them.

use std::collections::BTreeMap;

use super::Shard;
use super::roles::Cause;
use crate::config::NodeId;
use crate::message::{Message, MessageKind};

/// How long a leader waits for an append to carry it.
const WAIT_MS: u64 = 2;

/// What a leader has told.
#[derive(Debug, Default)]
pub(super) struct Notice {
    /// The commit index last sent to each peer.
    told: BTreeMap<NodeId, u64>,
    /// When those who were not told will be.
    due_ms: Option<u64>,
    /// The time as last heard of.
    now_ms: u64,
}

impl Notice {
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.due_ms
    }

    pub(super) fn hear_time(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Forgets what an earlier leadership told.
    pub(super) fn forget(&mut self) {
        self.told.clear();
        self.due_ms = None;
    }

    pub(super) fn sent(&mut self, message: &Message) {
        if matches!(message.kind, MessageKind::Append | MessageKind::Heartbeat) {
            self.told.insert(message.to(), message.inner.commit);
        }
    }
}

impl Shard {
    /// Members that have not been sent the newest commit index.
    fn untold(&self) -> impl Iterator<Item = NodeId> + '_ {
        let commit = self.commit();
        let told = move |node: &NodeId| self.notice.told.get(node).is_some_and(|at| *at >= commit);
        let members = self.raw.raft.prs().iter().map(|(node, _)| *node);
        members.filter(move |node| *node != self.node && !told(node))
    }

    /// Sets the time for a notice once there is something to tell; after the messages of a turn are out.
    pub(super) fn owe_notice(&mut self) {
        if !self.is_leader() || self.untold().next().is_none() {
            self.notice.due_ms = None;
        } else {
            self.notice.due_ms.get_or_insert(self.notice.now_ms + WAIT_MS);
        }
    }

    /// Sends the notices that are due.
    pub(super) fn give_notice(&mut self, now_ms: u64) {
        self.notice.hear_time(now_ms);
        if !self.is_leader() || self.notice.due_ms.is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        self.notice.due_ms = None;
        let mut untold: Vec<NodeId> = self.untold().collect();
        untold.sort_unstable();
        let commit = self.commit();
        for node in untold {
            // One that cannot be sent to now hears it from a heartbeat.
            self.notice.told.insert(node, commit);
            self.raw.raft.send_append(node);
        }
        self.settle(Cause::Other);
    }
}
