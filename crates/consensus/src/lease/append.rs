//! Writing: proposals gather, one append is under way at a time, and an open outcome is settled by reading.
//!
//! Promises: within one epoch an index is given to one entry only, so that an append which the database carries out
//! late, after it was believed lost, writes just what a repetition would have written.

use bytes::Bytes;

use super::{Answer, Chain, LeaseShard, Stand, Work};
use crate::config::Start;
use crate::entry::{Entry, EntryKind};
use crate::errors::NotLeader;
use crate::outbox::Reason;

/// An append under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AppendAsk {
    pub(super) id: u64,
    /// How many entries of the queue it carries.
    count: usize,
}

impl LeaseShard {
    pub(crate) fn propose(&mut self, payload: Bytes) -> Result<(u64, u64), NotLeader> {
        let hold = self.check_leads()?;
        if let Some(to) = self.leaving {
            return Err(NotLeader { leader: Some(to).filter(|to| *to != 0) });
        }
        Ok((hold.epoch, self.gather(hold.epoch, payload)))
    }

    /// Puts an entry into the queue; gives its index.
    pub(super) fn gather(&mut self, epoch: u64, data: Bytes) -> u64 {
        let index = self.last_index() + 1;
        let (kind, context) = (EntryKind::Normal, Bytes::new());
        self.queue.push_back(Entry { term: epoch, index, kind, data, context });
        index
    }

    /// Sends the next append, unless one is under way or open.
    pub(super) fn append_next(&mut self) {
        let Stand::Leads(hold) = self.stand else { return };
        if self.under_way.append.is_some() || self.is_settling || self.queue.is_empty() {
            return;
        }
        let (mut count, mut bytes) = (0, 0);
        for entry in &self.queue {
            if bytes >= self.config.batch_bytes_max {
                break;
            }
            (count, bytes) = (count + 1, bytes + entry.weight());
        }
        let entries = self.queue.iter().take(count).cloned().collect();
        let id = self.ask(Work::Append { epoch: hold.epoch, after: self.chain, entries });
        self.sent_index = self.last.index + count as u64;
        self.under_way.append = Some(AppendAsk { id, count });
    }

    pub(super) fn append_answered(&mut self, answer: &Answer) {
        let Some(AppendAsk { count, .. }) = self.under_way.append.take() else { return };
        match answer {
            Answer::Appended { chain } => {
                let count = count.min(self.queue.len());
                let written: Vec<Entry> = self.queue.drain(..count).collect();
                for entry in written {
                    self.hand_out(entry, *chain);
                }
                self.keep_lease();
            }
            Answer::Deposed => self.step_down(Reason::LeaseLost),
            Answer::Conflict => self.settle_after(0),
            // A database that has no room, or takes no writes, is not asked again and again without a pause.
            _ => self.settle_after(self.config.retry_ms),
        }
    }

    /// The log is read before anything more is written.
    fn settle_after(&mut self, pause_ms: u64) {
        self.is_settling = true;
        self.due.poll_ms = self.now_ms + pause_ms;
    }

    /// The database has this entry, the next of the log.
    pub(super) fn hand_out(&mut self, entry: Entry, chain: Chain) {
        // The first entry of an epoch is remembered at once: it says whose epoch that was.
        self.is_unnoted |= entry.term > self.last.term;
        self.chain = chain;
        self.last = Start { index: entry.index, term: entry.term };
        self.ready.push(entry);
    }
}
