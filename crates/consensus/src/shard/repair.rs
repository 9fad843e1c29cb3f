//! A shard whose log lost entries that were durable once (R11).
//!
//! Promises: while damaged, the shard answers no vote request and starts no campaign, as it may have forgotten
//! entries that count as committed because of it. It ends when a leader has refilled the log up to the floor,
//! or when a leader of a term newer than any that this node ever acknowledged has committed in its term and all
//! of that is durable here: such a leader holds every committed entry and counts no old acknowledgement.
//! Leaves out: finding the damage, which is the store's work.

use super::Shard;
use crate::config::Recovered;
use crate::planted::{self, Bug};

/// A damage that is being repaired.
pub(super) struct Repair {
    /// Highest index that was durable once.
    floor: u64,
    /// Term at the start of the process.
    opened_term: u64,
}

impl Repair {
    /// The damage that `recovered` shows, if any.
    pub(super) fn needed(recovered: &Recovered) -> Option<Self> {
        let is_damaged = recovered.floor > recovered.last_index();
        is_damaged.then_some(Repair { floor: recovered.floor, opened_term: recovered.term })
    }
}

impl Shard {
    /// Whether votes must be withheld.
    pub(super) fn withholds_votes(&self) -> bool {
        self.repair.is_some() && !planted::active(Bug::DamagedVotes)
    }

    /// Ends the repair if the log is whole again.
    pub(super) fn finish_repair(&mut self) {
        let Some(repair) = &self.repair else {
            return;
        };
        let raft = &self.raw.raft;
        if raft.leader_id == 0 || !self.pending.is_empty() || self.installing.is_some() {
            return;
        }
        let persisted = raft.raft_log.persisted;
        let is_refilled = persisted >= repair.floor;
        let is_overtaken = raft.term > repair.opened_term
            && raft.commit_to_current_term()
            && persisted >= raft.raft_log.committed;
        if is_refilled || is_overtaken {
            self.repair = None;
        }
    }

    pub(crate) fn is_repairing(&self) -> bool {
        self.repair.is_some()
    }
}
