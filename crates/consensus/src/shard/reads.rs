//! Linearizable reads: a leader confirms that it still leads, after the read arrived.
//!
//! Promises: all reads of one turn share one round of heartbeats; a read waits until the leader has committed in
//! its term (the engine would drop it silently); a deposed leader loses its reads and says so. No clock is
//! trusted: there are no lease reads.

use std::collections::VecDeque;

use raft::ReadState;

use super::Shard;
use super::roles::Cause;
use crate::errors::NotLeader;
use crate::outbox::Outbox;
use crate::planted::{self, Bug};

/// Rounds on their way at one time; more reads wait and share the next round.
const ROUNDS_MAX: usize = 4;

/// Reads of one shard.
#[derive(Default)]
pub(super) struct Reads {
    /// Not yet part of a round.
    waiting: Vec<u64>,
    /// Asked, oldest first.
    rounds: VecDeque<(u64, Vec<u64>)>,
    next_round: u64,
    /// Lost, to be reported.
    lost: Vec<u64>,
}

impl Reads {
    pub(super) fn lose_all(&mut self) {
        for (_, ids) in self.rounds.drain(..) {
            self.lost.extend(ids);
        }
        self.lost.append(&mut self.waiting);
    }
}

impl Shard {
    pub(crate) fn read(&mut self, id: u64) -> Result<(), NotLeader> {
        self.check_leader()?;
        self.reads.waiting.push(id);
        self.is_dirty = true;
        Ok(())
    }

    /// Starts a round for the waiting reads, if one can succeed.
    pub(super) fn start_round(&mut self, out: &mut Outbox) {
        if self.reads.waiting.is_empty() || !self.is_leader() {
            return;
        }
        if planted::active(Bug::LeaseRead) {
            let commit = self.commit();
            let ids = self.reads.waiting.drain(..);
            out.reads.extend(ids.map(|id| (self.id, id, commit)));
            return;
        }
        if !self.raw.raft.commit_to_current_term() || self.reads.rounds.len() >= ROUNDS_MAX {
            return;
        }
        let round = self.reads.next_round;
        self.reads.next_round += 1;
        let ids = std::mem::take(&mut self.reads.waiting);
        self.reads.rounds.push_back((round, ids));
        self.raw.read_index(round.to_be_bytes().to_vec());
        self.settle(Cause::Other);
    }

    /// Hands out the reads of confirmed rounds.
    pub(super) fn finish_rounds(&mut self, confirmed: Vec<ReadState>, out: &mut Outbox) {
        for state in confirmed {
            let Ok(bytes) = <[u8; 8]>::try_from(state.request_ctx.as_slice()) else {
                continue;
            };
            let round = u64::from_be_bytes(bytes);
            // The engine confirms rounds in order, each with its own index.
            while self.reads.rounds.front().is_some_and(|(number, _)| *number <= round) {
                let (_, ids) = self.reads.rounds.pop_front().unwrap_or_default();
                out.reads.extend(ids.into_iter().map(|id| (self.id, id, state.index)));
            }
        }
    }

    pub(super) fn report_lost_reads(&mut self, out: &mut Outbox) {
        out.reads_lost.extend(self.reads.lost.drain(..).map(|id| (self.id, id)));
    }
}
