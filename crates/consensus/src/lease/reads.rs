//! Linearizable reads: a look at the lease after the read arrived proves that nobody else has written since.
//!
//! Promises: a read never falls behind what any node has applied, even if its writer has not heard of it yet; reads of
//! one look are answered together; a leader that has not written in its epoch lets them wait.

use super::refuse::Asked;
use super::{Answer, LeaseShard, Stand, Work};
use crate::errors::NotLeader;
use crate::outbox::Reason;
use crate::planted::{self, Bug};

/// Reads by their ids.
#[derive(Debug, Default)]
pub(super) struct Reads {
    waiting: Vec<u64>,
    pub(super) ready: Vec<(u64, u64)>,
    pub(super) lost: Vec<u64>,
}

/// A look under way, and who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfirmAsk {
    pub(super) id: u64,
    reads: Vec<u64>,
    index: u64,
    asked: Asked,
}

impl LeaseShard {
    pub(crate) fn read(&mut self, id: u64) -> Result<(), NotLeader> {
        self.check_leads()?;
        self.reads.waiting.push(id);
        Ok(())
    }

    pub(super) fn confirm_reads(&mut self) {
        let is_idle = self.under_way.confirm.is_none() && !self.reads.waiting.is_empty();
        if !is_idle || !self.is_settled() {
            return;
        }
        let (index, asked) = (self.last.index.max(self.sent_index), self.asked());
        let reads = std::mem::take(&mut self.reads.waiting);
        if planted::active(Bug::LeaseReadUnconfirmed) {
            self.reads.ready.extend(reads.into_iter().map(|read| (read, index)));
            return;
        }
        let id = self.ask(Work::Look { from_index: asked.last.index + 1 });
        self.under_way.confirm = Some(ConfirmAsk { id, reads, index, asked });
    }

    pub(super) fn confirm_answered(&mut self, answer: &Answer) {
        let Some(ask) = self.under_way.confirm.take() else { return };
        let Answer::Tail { head, .. } = answer else {
            self.reads.lost.extend(ask.reads);
            return;
        };
        if !self.continues(head, &ask.asked) {
            self.reads.lost.extend(ask.reads);
            return;
        }
        let lease = head.lease;
        self.learn(&lease, ask.asked.floor);
        match self.stand {
            Stand::Leads(hold) if lease.is_ours && lease.epoch == hold.epoch => {
                self.reads.ready.extend(ask.reads.into_iter().map(|read| (read, ask.index)));
            }
            Stand::Follows => self.reads.lost.extend(ask.reads),
            Stand::CatchesUp(_) | Stand::Leads(_) => {
                self.reads.lost.extend(ask.reads);
                self.step_down(Reason::LeaseLost);
            }
        }
    }

    pub(super) fn lose_reads(&mut self) {
        let waiting = std::mem::take(&mut self.reads.waiting);
        let asked = self.under_way.confirm.take().map(|ask| ask.reads);
        self.reads.lost.extend(waiting.into_iter().chain(asked.into_iter().flatten()));
    }
}
