//! What can be asked of a shard without changing it.

use raft::eraftpb;
use raft::{GetEntriesContext, ProgressState};

use super::Shard;
use crate::conf::{Conf, NO_CONF};
use crate::config::NodeId;
use crate::entry::Entry;
use crate::outbox::Role;

/// How a leader feeds a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Looks for the point where the logs agree.
    Probe,
    /// Sends entries as they come.
    Replicate,
    /// Waits for a snapshot to arrive.
    Snapshot,
}

/// A leader's view of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProgress {
    /// The member.
    pub node: NodeId,
    /// Highest index that it acknowledged.
    pub matched: u64,
    /// Index of the next entry to send.
    pub next: u64,
    /// How it is fed.
    pub state: PeerState,
    /// Whether it was heard since the last check of the majority.
    pub is_active: bool,
    /// Whether it has no vote.
    pub is_learner: bool,
}

/// Where a node stands in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its role.
    pub role: Role,
    /// The current term.
    pub term: u64,
    /// The node voted for in the current term.
    pub vote: Option<NodeId>,
    /// The proven leader of the current term.
    pub leader: Option<NodeId>,
    /// The known commit index.
    pub commit: u64,
    /// The last index of the log, durable or not.
    pub last_index: u64,
    /// Whether the log is damaged and not yet repaired.
    pub is_repairing: bool,
}

impl Shard {
    pub(crate) fn term(&self) -> u64 {
        self.raw.raft.term
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        Some(self.raw.raft.leader_id).filter(|leader| *leader != 0)
    }

    pub(crate) fn vote(&self) -> Option<NodeId> {
        Some(self.raw.raft.vote).filter(|vote| *vote != 0)
    }

    pub(crate) fn commit(&self) -> u64 {
        self.raw.raft.raft_log.committed
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }

    pub(crate) fn first_index(&self) -> u64 {
        self.raw.store().first_index_kept()
    }

    pub(crate) fn conf(&self) -> Conf {
        Conf::from_engine(&self.raw.raft.prs().conf().to_conf_state())
    }

    /// The membership of the newest change that was applied: the one in force, save while a snapshot is accepted.
    pub(crate) fn conf_applied(&self) -> &Conf {
        self.confs.last().map_or(&NO_CONF, |(_, conf)| conf)
    }

    pub(crate) fn conf_at(&self, index: u64) -> Option<Conf> {
        let covering = self.confs.iter().rev().find(|(since, _)| *since <= index);
        covering.map(|(_, conf)| conf.clone())
    }

    pub(crate) fn transferring(&self) -> Option<NodeId> {
        self.raw.raft.lead_transferee
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.is_leader() && self.raw.raft.commit_to_current_term()
    }

    pub(crate) fn progress(&self) -> Vec<PeerProgress> {
        if !self.is_leader() {
            return Vec::new();
        }
        let tracker = self.raw.raft.prs();
        let others = tracker.iter().filter(|(node, _)| **node != self.node);
        let mut peers: Vec<PeerProgress> = others
            .map(|(node, progress)| PeerProgress {
                node: *node,
                matched: progress.matched,
                next: progress.next_idx,
                state: match progress.state {
                    ProgressState::Probe => PeerState::Probe,
                    ProgressState::Replicate => PeerState::Replicate,
                    ProgressState::Snapshot => PeerState::Snapshot,
                },
                is_active: progress.recent_active,
                is_learner: tracker.conf().learners().contains(node),
            })
            .collect();
        peers.sort_unstable_by_key(|peer| peer.node);
        peers
    }

    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        let log = &self.raw.raft.raft_log;
        let is_known = index + 1 >= log.first_index() && index <= log.last_index();
        if is_known { log.term(index).ok() } else { None }
    }

    pub(crate) fn entries(&self, low: u64, high: u64) -> Vec<Entry> {
        self.engine_entries(low, high).iter().map(Entry::from_engine).collect()
    }

    pub(super) fn engine_entries(&self, low: u64, high: u64) -> Vec<eraftpb::Entry> {
        let log = &self.raw.raft.raft_log;
        let low = low.max(log.first_index());
        let high = high.min(log.last_index());
        if low > high {
            return Vec::new();
        }
        let context = GetEntriesContext::empty(false);
        log.slice(low, high + 1, None, context).unwrap_or_default()
    }
}
