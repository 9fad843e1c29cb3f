//! Appends entries as a leader, and hands leadership over.
//!
//! Promises: an accepted proposal has the returned term and index; whether it commits is seen by applying that
//! index. Followers never forward proposals: the caller is told who leads.

use bytes::Bytes;
use raft::eraftpb;

use super::Shard;
use super::roles::Cause;
use crate::config::NodeId;
use crate::errors::{NotLeader, TransferError};

impl Shard {
    pub(crate) fn propose(&mut self, payload: Bytes) -> Result<(u64, u64), NotLeader> {
        self.check_leader()?;
        // While leadership moves, proposals go to the next leader or nowhere.
        if let Some(to) = self.transferring() {
            return Err(NotLeader { leader: Some(to) });
        }
        Ok(self.append(eraftpb::Entry { data: payload, ..Default::default() }))
    }

    /// Appends one entry as the leader and sends it out. The caller has checked that this node leads.
    pub(super) fn append(&mut self, entry: eraftpb::Entry) -> (u64, u64) {
        let accepted = self.raw.raft.append_entry(&mut [entry]);
        assert!(accepted, "the engine has no limit on uncommitted entries");
        self.raw.raft.bcast_append();
        self.settle(Cause::Other);
        (self.raw.raft.term, self.raw.raft.raft_log.last_index())
    }

    pub(crate) fn transfer(&mut self, to: NodeId) -> Result<(), TransferError> {
        self.check_leader()?;
        let conf = self.conf();
        if to == self.node {
            return Err(TransferError::ToSelf(to));
        }
        if !conf.is_member(to) {
            return Err(TransferError::Unknown(to));
        }
        if !conf.voters.contains(&to) {
            return Err(TransferError::NotVoter(to));
        }
        self.raw.transfer_leader(to);
        self.settle(Cause::Other);
        Ok(())
    }

    pub(super) fn check_leader(&self) -> Result<(), NotLeader> {
        match self.is_leader() {
            true => Ok(()),
            false => Err(NotLeader { leader: self.leader() }),
        }
    }
}
