//! Changes of membership: always joint, left explicitly, one at a time.
//!
//! Promises: a leader proposes a change only after it committed an entry of its own term and applied all earlier
//! changes (R9); it never removes itself, as the engine cannot survive that; while joint, whoever leads proposes
//! the leave, again after every failover; a leader that is itself on its way out hands over first, and is
//! deposed if the leave reaches it all the same. Changes take effect when they are handed out for applying.

use bytes::Bytes;
use raft::eraftpb;

use super::Shard;
use super::roles::Cause;
use crate::conf::{Change, ChangeStep, Conf};
use crate::config::NodeId;
use crate::errors::ChangeError;
use crate::outbox::Outbox;
use crate::planted::{self, Bug};

impl Shard {
    pub(crate) fn change(&mut self, change: Change) -> Result<(u64, u64), ChangeError> {
        self.check_leader()?;
        if let Some(to) = self.transferring() {
            return Err(ChangeError::Transferring(to));
        }
        if !self.is_settled() {
            return Err(ChangeError::TooEarly);
        }
        let conf = self.conf();
        if conf.is_joint() || self.raw.raft.has_pending_conf() {
            return Err(ChangeError::Pending);
        }
        self.check_change(&conf, &change)?;
        Ok(self.append_change(&ChangeStep::Enter(change)))
    }

    fn check_change(&self, conf: &Conf, change: &Change) -> Result<(), ChangeError> {
        let named = change.named();
        if named.is_empty() {
            return Err(ChangeError::Empty);
        }
        if named[0] == 0 {
            return Err(ChangeError::Ambiguous(0));
        }
        if let Some(pair) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ChangeError::Ambiguous(pair[0]));
        }
        let find = |list: &[NodeId], is_wrong: &dyn Fn(NodeId) -> bool| {
            list.iter().copied().find(|node| is_wrong(*node))
        };
        if let Some(node) = find(&change.remove, &|node| !conf.is_member(node)) {
            return Err(ChangeError::Unknown(node));
        }
        let unchanged = find(&change.add_voters, &|node| conf.voters.contains(&node))
            .or(find(&change.add_learners, &|node| conf.learners.contains(&node)));
        if let Some(node) = unchanged {
            return Err(ChangeError::Unchanged(node));
        }
        let voters = change.voters_after(conf);
        if voters.is_empty() {
            return Err(ChangeError::NoVoters);
        }
        match voters.contains(&self.node) {
            true => Ok(()),
            false => Err(ChangeError::RemovesLeader(self.node)),
        }
    }

    /// Leaves the joint phase when that is allowed; called whenever something moved.
    pub(super) fn leave_joint_phase(&mut self) {
        let is_joint = self.conf_applied().is_joint();
        if !is_joint || self.transferring().is_some() || !self.is_settled() {
            return;
        }
        let conf = self.conf();
        let is_due = conf.is_joint() && !self.raw.raft.has_pending_conf();
        if is_due && conf.voters.contains(&self.node) {
            self.append_change(&ChangeStep::Leave);
        }
    }

    /// A leader whose vote ends with the joint phase hands over to the best of those who stay.
    pub(super) fn hand_over_when_leaving(&mut self) {
        // Asked at every tick: what was applied is at hand, the engine's own form would be copied.
        if !self.conf_applied().is_joint() {
            return;
        }
        let conf = self.conf();
        if !conf.is_joint() || conf.voters.contains(&self.node) || self.transferring().is_some() {
            return;
        }
        let staying = self.progress().into_iter().filter(|peer| conf.voters.contains(&peer.node));
        let best = staying.filter(|peer| peer.is_active).max_by_key(|peer| peer.matched);
        if let Some(best) = best {
            self.raw.transfer_leader(best.node);
            self.settle(Cause::Other);
        }
    }

    fn append_change(&mut self, step: &ChangeStep) -> (u64, u64) {
        let mut context = Vec::new();
        step.encode(&mut context);
        let entry = eraftpb::Entry {
            entry_type: eraftpb::EntryType::EntryConfChangeV2,
            context: Bytes::from(context),
            ..Default::default()
        };
        // Appended directly: the engine's own way would read the change through its protobuf parser.
        let appended = self.append(entry);
        self.raw.raft.pending_conf_index = appended.1;
        if planted::active(Bug::ChangeAtPropose) {
            let applied = self.raw.raft.apply_conf_change(&step.to_engine());
            self.changed_early = if applied.is_ok() { appended.1 } else { 0 };
            self.settle(Cause::Change);
        }
        appended
    }

    /// Lets a committed change take effect.
    pub(super) fn apply_change(&mut self, index: u64, context: &[u8], out: &mut Outbox) {
        if planted::active(Bug::ChangeAtPropose) && self.changed_early == index {
            self.note_conf(index, out);
            return;
        }
        let Ok(step) = ChangeStep::decode(context) else {
            self.fault(format!("committed change {index} cannot be read"));
            return;
        };
        let conf = self.conf();
        let stays = match &step {
            ChangeStep::Enter(_) => conf.is_voter(self.node),
            ChangeStep::Leave => conf.voters.contains(&self.node),
        };
        if self.is_leader() && !stays {
            // The engine panics when a leader without a place in the membership counts votes.
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
            self.settle(Cause::Change);
        }
        if self.raw.raft.apply_conf_change(&step.to_engine()).is_ok() {
            self.settle(Cause::Change);
            self.note_conf(index, out);
        } else {
            // Leaders propose only what fits, so that the memberships must have diverged.
            self.fault(format!("committed change {index} does not fit the membership"));
        }
    }

    fn note_conf(&mut self, index: u64, out: &mut Outbox) {
        let conf = self.conf();
        self.confs.push((index, conf.clone()));
        out.conf_changed.push((self.id, conf));
    }
}
