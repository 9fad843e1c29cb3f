//! Moves work out of the engine: log records, messages, entries to apply, finished reads.
//!
//! Promises: within a batch a restart precedes the hard state and that precedes entries; a leader's messages
//! leave at once and overlap its own disk write (they promise nothing about it), as do answers to heartbeats; all
//! others wait as long as something of this shard is not durable.
//!
//! An answer to a heartbeat says "I hear you in this term", no more. A leader that counts it knows that no later leader
//! had this node's vote at that time; that the term is not yet on disk here takes nothing from that, since those who
//! elected the leader have it on theirs. If it waited, a slow disk of a follower would look like its death (F-11).

use raft::{Ready, eraftpb};

use super::Shard;
use super::persist::Pending;
use super::roles::Cause;
use crate::conf::Conf;
use crate::config::Start;
use crate::entry::{Entry, EntryKind};
use crate::message::{Message, MessageKind};
use crate::outbox::{Io, IoRecord, Outbox, SnapshotNeed};
use crate::planted::{self, Bug};

impl Shard {
    /// Hands out all there is to do.
    pub(crate) fn drain(&mut self, io: &mut Io, out: &mut Outbox) {
        if !self.is_dirty {
            return;
        }
        loop {
            self.leave_joint_phase();
            self.start_round(out);
            self.apply_early(out);
            if !self.raw.has_ready() {
                break;
            }
            self.turn(io, out);
        }
        for message in std::mem::take(&mut self.released) {
            self.send(message, out);
        }
        self.owe_notice();
        if self.raw.store().take_snapshot_wanted() {
            out.snapshots_wanted.push(self.id);
        }
        self.report_lost_reads(out);
        out.roles.append(&mut self.roles);
        out.faults.append(&mut self.faults);
        self.is_dirty = false;
    }

    /// One engine turn.
    fn turn(&mut self, io: &mut Io, out: &mut Outbox) {
        let mut ready = self.raw.ready();
        let number = ready.number();
        let snapshot = self.take_snapshot(&ready, io, out);
        self.take_hard_state(&ready, io);
        self.take_entries(&mut ready, io);
        let mut messages = ready.take_messages();
        messages.extend(ready.take_persisted_messages());
        let confirmed = ready.take_read_states();
        let committed = ready.take_committed_entries();
        let must_sync = ready.must_sync();
        self.raw.advance_append_async(ready);

        let mut held = self.sort_messages(messages, out);
        if planted::active(Bug::AnswersBeforeFsync) {
            self.released.append(&mut held);
        }
        if must_sync {
            io.must_sync = true;
            let pending = Pending { seq: io.seq, is_durable: false, number, snapshot, held };
            self.pending.push_back(pending);
        } else if let Some(last) = self.pending.back_mut() {
            last.number = number;
            last.held.extend(held);
        } else {
            self.raw.on_persist_ready(number);
            self.released.extend(held);
        }
        self.settle(Cause::Other);
        self.finish_rounds(confirmed, out);
        self.emit(committed, out);
    }

    /// A snapshot that the engine accepted: the log restarts there.
    fn take_snapshot(&mut self, ready: &Ready, io: &mut Io, out: &mut Outbox) -> Option<u64> {
        if ready.snapshot().is_empty() {
            return None;
        }
        let meta = ready.snapshot().get_metadata();
        let start = Start { index: meta.index, term: meta.term };
        let conf = Conf::from_engine(meta.get_conf_state());
        self.raw.mut_store().restart(start, conf.clone());
        self.installing = Some(start.index);
        self.emitted = start.index;
        self.confs = vec![(start.index, conf.clone())];
        io.records.push(IoRecord::Restart { shard: self.id, start });
        out.install.push((self.id, start, conf.clone()));
        out.conf_changed.push((self.id, conf));
        Some(start.index)
    }

    fn take_hard_state(&self, ready: &Ready, io: &mut Io) {
        let Some(hard) = ready.hs() else {
            return;
        };
        let is_vote_lost = planted::active(Bug::VoteNotPersisted);
        let is_term_lost = planted::active(Bug::TermNotPersisted);
        io.records.push(IoRecord::Hard {
            shard: self.id,
            term: if is_term_lost { self.opened_term } else { hard.term },
            vote: if is_vote_lost { 0 } else { hard.vote },
            commit: hard.commit,
        });
    }

    fn take_entries(&mut self, ready: &mut Ready, io: &mut Io) {
        let entries = ready.take_entries();
        let Some(last) = entries.last().map(|entry| entry.index) else {
            return;
        };
        let mut records: Vec<Entry> = entries.iter().map(Entry::from_engine).collect();
        if planted::active(Bug::StaleSuffixKept) {
            records.extend(self.raw.store().suffix_after(last).map(Entry::from_engine));
        }
        self.raw.mut_store().append(&entries);
        io.records.push(IoRecord::Append { shard: self.id, entries: records });
    }

    /// Sends what promises nothing, and returns what must wait for the disk.
    fn sort_messages(&mut self, all: Vec<eraftpb::Message>, out: &mut Outbox) -> Vec<Message> {
        let is_repairing = self.is_repairing();
        let mut held = Vec::new();
        for inner in all {
            let Some(mut message) = Message::from_engine(self.id, is_repairing, inner) else {
                continue;
            };
            if is_repairing && message.kind == MessageKind::HeartbeatAnswer {
                // Tells the leader how far the damaged log reaches; the engine leaves this field alone.
                message.inner.index = self.raw.raft.raft_log.persisted;
            }
            let is_sign_of_life = message.kind == MessageKind::HeartbeatAnswer && !is_repairing;
            if is_sign_of_life || (self.is_leader() && message.kind.is_from_leader()) {
                self.send(message, out);
            } else {
                held.push(message);
            }
        }
        held
    }

    fn send(&mut self, message: Message, out: &mut Outbox) {
        let to = message.to();
        self.notice.sent(&message);
        if message.kind != MessageKind::Snapshot {
            out.send.push((to, self.id, message));
        } else if let Some((start, conf)) = message.snapshot() {
            out.snapshots.push(SnapshotNeed { shard: self.id, to, start, conf, message });
        }
    }

    /// Hands out committed entries; a change takes effect here and ends its list.
    fn emit(&mut self, committed: Vec<eraftpb::Entry>, out: &mut Outbox) {
        let mut list = Vec::with_capacity(committed.len());
        for engine in committed {
            if engine.index <= self.emitted {
                continue;
            }
            let entry = Entry::from_engine(&engine);
            assert!(entry.index == self.emitted + 1, "entries are handed out without gaps");
            self.emitted = entry.index;
            let is_change = entry.kind == EntryKind::Change;
            let (index, context) = (entry.index, entry.context.clone());
            list.push(entry);
            if is_change {
                out.apply.push((self.id, std::mem::take(&mut list)));
                self.apply_change(index, &context, out);
            }
        }
        if !list.is_empty() {
            out.apply.push((self.id, list));
        }
    }

    /// Planted: hands out committed entries that are not durable here.
    fn apply_early(&mut self, out: &mut Outbox) {
        if planted::active(Bug::ApplyBeforePersist) && self.installing.is_none() {
            let entries = self.engine_entries(self.emitted + 1, self.commit());
            self.emit(entries, out);
        }
    }
}
