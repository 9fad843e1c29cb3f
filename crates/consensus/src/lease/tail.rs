//! Reading the log: to follow it, to catch up after taking the lease, to settle an append whose outcome is open.
//!
//! Promises: entries are taken in order, once, and only with epochs that never fall (P1); nothing is taken of a log that
//! lacks what it once held, or holds something else there (P2, `refuse`).

use bytes::Bytes;

use super::refuse::Asked;
use super::{Answer, Chain, LeaseShard, Stand, Work, Written};
use crate::conf::Conf;
use crate::config::Start;
use crate::outbox::Reason;
use crate::planted::{self, Bug};

/// What a reading is for. Only one that began afterwards counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Follow,
    CatchUp,
    Settle,
    /// A holder knows what it wrote; it looks now and then whether that is still there.
    Watch,
}

/// A reading under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TailAsk {
    pub(super) id: u64,
    purpose: Purpose,
    asked: Asked,
}

/// Whether a stored snapshot is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Install {
    Nothing,
    Wanted,
    UnderWay,
}

impl LeaseShard {
    fn purpose(&self) -> Purpose {
        match self.stand {
            Stand::Follows => Purpose::Follow,
            Stand::CatchesUp(_) => Purpose::CatchUp,
            Stand::Leads(_) if self.is_settling => Purpose::Settle,
            Stand::Leads(_) => Purpose::Watch,
        }
    }

    fn may_read(&self) -> bool {
        self.under_way.tail.is_none() && self.install == Install::Nothing
    }

    /// When the log is read next.
    pub(super) fn reading_ms(&self) -> Option<u64> {
        self.may_read().then_some(self.due.poll_ms)
    }

    /// When it is read after a reading that brought all there is.
    fn next_reading_ms(&self) -> u64 {
        match self.purpose() {
            Purpose::Watch => self.now_ms + self.config.ttl_ms,
            // What the notice told of may have come after the reading began: a lease given back would wait for the poll.
            _ if self.has_news => self.now_ms,
            _ => self.now_ms + self.config.poll_ms,
        }
    }

    pub(super) fn read_tail_if_due(&mut self) {
        if !self.may_read() || self.now_ms < self.due.poll_ms {
            return;
        }
        let purpose = self.purpose();
        let (from_index, bytes_max) = (self.last.index + 1, self.config.batch_bytes_max);
        let asked = self.asked();
        self.has_news = false;
        let id = self.ask(Work::Read { from_index, bytes_max });
        self.under_way.tail = Some(TailAsk { id, purpose, asked });
    }

    pub(super) fn tail_answered(&mut self, answer: Answer) {
        let Some(ask) = self.under_way.tail.take() else { return };
        let Answer::Tail { head, entries } = answer else {
            let spread_ms = self.rng.u64(0..=self.config.retry_ms);
            self.due.poll_ms = self.now_ms + self.config.retry_ms + spread_ms;
            // What the last look showed may be of a database that is not there any more.
            self.due.take_ms = u64::MAX;
            return;
        };
        self.due.poll_ms = self.next_reading_ms();
        if !self.continues(&head, &ask.asked) {
            return;
        }
        if !self.learn(&head.lease, ask.asked.floor) && !planted::active(Bug::LeaseEarlyReading) {
            // An early reading, overtaken by news: a new holder must not wait for the next poll.
            self.due.poll_ms = self.now_ms;
            return;
        }
        if self.purpose() == Purpose::Watch {
            // What it shows of our own entries, the answers to our appends tell.
            return;
        }
        if head.purged_index > self.last.index {
            self.install = Install::Wanted;
            return;
        }
        for written in entries {
            if !self.take_entry(written) {
                return;
            }
        }
        let is_early = self.purpose() != ask.purpose && !planted::active(Bug::LeaseEarlyReading);
        if self.last.index < head.last_index || is_early {
            // There is more, or this reading began too early for what it is needed for now.
            self.due.poll_ms = self.now_ms;
            return;
        }
        let is_planted = planted::active(Bug::LeaseEarlyReading);
        self.read_to_the_end(if is_planted { self.purpose() } else { ask.purpose });
        self.due.poll_ms = self.next_reading_ms();
    }

    /// Takes one entry in; false if nothing more of this answer may be used.
    fn take_entry(&mut self, Written { entry, chain }: Written) -> bool {
        if entry.index <= self.last.index {
            return true;
        }
        let ours = self.hold().map(|hold| hold.epoch);
        if entry.index != self.last.index + 1 || entry.term < self.last.term {
            let (index, term, last) = (entry.index, entry.term, self.last);
            self.fault(format!("the log has entry {index} of epoch {term} after {last:?}"));
            return false;
        }
        if self.is_noted_otherwise(entry.index, chain) {
            return false;
        }
        if ours.is_some_and(|epoch| entry.term > epoch) {
            self.step_down(Reason::LeaseLost);
        }
        if let Some(front) = self.queue.pop_front()
            && front != entry
        {
            let (index, term) = (entry.index, entry.term);
            self.fault(format!(
                "somebody else wrote entry {index} in our epoch, or after it as {term}"
            ));
            return false;
        }
        self.hand_out(entry, chain);
        true
    }

    fn read_to_the_end(&mut self, purpose: Purpose) {
        match (purpose, self.stand) {
            (Purpose::CatchUp, Stand::CatchesUp(hold)) => {
                self.stand = Stand::Leads(hold);
                // The first entry of the epoch: reads wait for it, and others see that the holder is at work.
                self.gather(hold.epoch, Bytes::new());
                self.report(Reason::LeaseTaken);
            }
            (Purpose::Settle, Stand::Leads(_)) => self.is_settling = false,
            _ => {}
        }
    }

    /// All entries up to and including `index` are applied.
    pub(crate) fn applied(&mut self, index: u64) {
        self.applied = self.applied.max(index);
    }

    /// A snapshot at `start` is stored in the database: the log before it may go.
    pub(crate) fn compact(&mut self, start: Start, conf: Conf) {
        if start.index <= self.start.index || start.index > self.last.index {
            return;
        }
        (self.start, self.conf) = (start, conf);
        if let Stand::Leads(hold) = self.stand {
            let (epoch, known) = (hold.epoch, self.known());
            self.ask(Work::Purge { epoch, to_index: start.index, known });
        }
    }

    /// The stored snapshot at `start` is loaded; a point that is no news means that none could be.
    pub(crate) fn snapshot_installed(&mut self, start: Start, conf: Conf) {
        self.install = Install::Nothing;
        self.due.poll_ms = self.now_ms;
        if start.index > self.last.index {
            (self.start, self.last, self.applied) = (start, start, start.index);
            (self.conf, self.chain) = (conf, Chain::UNKNOWN);
        }
    }
}
