//! Screens messages of peers before the engine sees them.
//!
//! Promises: no message, however wrong, makes the engine panic; what only a broken peer or disk could send is
//! dropped and reported as a fault. Local kinds never get here, as they have no encoding.

use raft::{ProgressState, eraftpb};

use super::Shard;
use super::roles::Cause;
use crate::config::NodeId;
use crate::message::{Message, MessageKind};
use crate::outbox::Fault;
use crate::planted::{self, Bug};

/// What the engine writes into vote requests of a transfer.
const TRANSFER: &[u8] = b"CampaignTransfer";

impl Shard {
    /// Takes a message that came from `from`.
    pub(crate) fn receive(&mut self, from: NodeId, message: Message, now_ms: u64) {
        let kind = message.kind;
        if kind == MessageKind::Snapshot {
            return;
        }
        self.notice.hear_time(now_ms);
        self.step(from, message);
        if kind == MessageKind::Vote && self.vote() == Some(from) {
            self.yield_to_candidate(now_ms);
        }
    }

    /// Screens and steps a message of any kind.
    pub(super) fn step(&mut self, from: NodeId, message: Message) {
        let kind = message.kind;
        let is_mine = message.inner.to == self.node && message.inner.from == from;
        if !is_mine || from == self.node || message.inner.term == 0 || !self.admits(&message) {
            return;
        }
        let is_repairing = message.is_repairing;
        let mut inner = message.inner;
        self.soften(kind, &mut inner);
        if kind == MessageKind::HeartbeatAnswer && is_repairing {
            self.forget_progress(&inner);
        }
        self.note_answer(kind, &inner);
        // The engine refuses answers of nodes that are no members: nothing to do about it.
        let _ = self.raw.step(inner);
        if planted::active(Bug::OldTermCommit) {
            self.commit_by_counting();
        }
        self.settle(Cause::Message(kind));
    }

    /// Whether the engine may see this message at all.
    fn admits(&mut self, message: &Message) -> bool {
        let inner = &message.inner;
        match message.kind {
            MessageKind::Vote | MessageKind::PreVote => !self.withholds_votes(),
            MessageKind::TimeoutNow => {
                let is_leader = self.raw.raft.leader_id == inner.from;
                is_leader && inner.term == self.raw.raft.term && self.may_campaign()
            }
            MessageKind::Append => self.admits_append(inner),
            MessageKind::AppendAnswer => {
                let is_current = self.is_leader() && inner.term == self.raw.raft.term;
                let is_beyond = !inner.reject && inner.index > self.raw.raft.raft_log.last_index();
                if is_current && is_beyond {
                    self.fault(format!("node {} acknowledges unknown entries", inner.from));
                }
                !(is_current && is_beyond)
            }
            MessageKind::Heartbeat => !self.is_rival(inner),
            _ => true,
        }
    }

    fn admits_append(&mut self, inner: &eraftpb::Message) -> bool {
        if inner.term < self.raw.raft.term {
            return true;
        }
        if self.is_rival(inner) {
            return false;
        }
        let log = &self.raw.raft.raft_log;
        let (first, committed) = (log.first_index(), log.committed);
        let conflict = inner.entries.iter().find(|entry| {
            entry.index <= committed
                && entry.index >= first
                && !log.match_term(entry.index, entry.term)
        });
        // Entries below the message's own index are not compared by the engine, so only these matter.
        match conflict.map(|entry| entry.index) {
            Some(index) if inner.index >= committed => {
                self.fault(format!("node {} contradicts committed entry {index}", inner.from));
                false
            }
            _ => true,
        }
    }

    /// Whether somebody else claims to lead the term that this node leads.
    fn is_rival(&mut self, inner: &eraftpb::Message) -> bool {
        let is_rival = self.is_leader() && inner.term == self.raw.raft.term;
        if is_rival {
            self.fault(format!("node {} also leads term {}", inner.from, inner.term));
        }
        is_rival
    }

    /// Bends fields that are true for the sender but would break the engine here.
    fn soften(&self, kind: MessageKind, inner: &mut eraftpb::Message) {
        let log = &self.raw.raft.raft_log;
        match kind {
            // A leader may count entries that this node lost with its disk.
            MessageKind::Heartbeat => inner.commit = inner.commit.min(log.last_index()),
            MessageKind::Vote | MessageKind::PreVote => {
                // Priority decides between equals. A transfer is an order (MQ-29), a newer log must win or
                // nobody could, and a node that cannot lead has no say.
                let is_order = inner.context == TRANSFER;
                let is_newer = inner.log_term > log.last_term();
                let cannot_lead = self.installing.is_some() || !self.raw.raft.promotable();
                if is_order || is_newer || cannot_lead {
                    inner.priority = i64::MAX;
                }
            }
            _ => {}
        }
    }

    /// A peer with a damaged log says how far it reaches: what it acknowledged beyond that no longer counts.
    ///
    /// Without this a leader of an unchanged term would never send those entries again.
    fn forget_progress(&mut self, inner: &eraftpb::Message) {
        if !self.is_leader() || inner.term != self.raw.raft.term {
            return;
        }
        if let Some(progress) = self.raw.raft.mut_prs().get_mut(inner.from)
            && inner.index < progress.matched
        {
            progress.matched = inner.index;
            // A peer that gets a snapshot is probed when that ends.
            if progress.state == ProgressState::Replicate {
                progress.become_probe();
            }
        }
    }

    /// Planted: counts copies without looking at the term.
    fn commit_by_counting(&mut self) {
        if self.is_leader() {
            let counted = self.raw.raft.mut_prs().maximal_committed_index().0;
            let last = self.raw.raft.raft_log.last_index();
            self.raw.raft.raft_log.commit_to(counted.min(last));
        }
    }

    pub(super) fn fault(&mut self, what: String) {
        self.is_dirty = true;
        self.faults.push(Fault { shard: self.id, what });
    }
}
