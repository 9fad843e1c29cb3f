//! One turn's end: everything gathered goes out.

use ikada_consensus::{Io, Outbox};

use crate::output::{Now, Outputs};
use crate::peer::{PeerMessage, Told};
use crate::replica::Replica;

/// Proposing can make work that proposes again (a lone voter commits at once); after this many rounds the rest waits
/// for the next turn.
const ROUNDS_MAX: usize = 16;

impl Replica {
    /// Proposes what was gathered, drains the engine, applies, and hands out all that the world must do.
    pub fn poll(&mut self, now: Now) -> Outputs {
        self.wall_ms = now.wall_ms;
        self.flush_reads(now);
        let mut outbox = std::mem::take(&mut self.outbox);
        for _ in 0..ROUNDS_MAX {
            if self.outbox_due {
                self.deliver_outboxes(now);
            }
            self.hint_foreseen(now);
            self.propose_pending(now);
            self.consensus.poll(&mut outbox);
            if outbox.is_empty() {
                break;
            }
            self.carry_out(&mut outbox, now);
        }
        self.outbox = outbox;
        if let Some(io) = &self.outputs.io {
            self.disk.handed_over(io.seq, now);
        }
        self.open_added(now);
        self.tend_reads(now);
        self.tend_leases(false, now);
        self.save_snapshots();
        self.outputs.stopped = self.is_handed_over(now);
        self.close_frames();
        std::mem::take(&mut self.outputs)
    }

    fn carry_out(&mut self, outbox: &mut Outbox, now: Now) {
        for change in outbox.roles.drain(..) {
            self.role_changed(&change, now);
        }
        if let Some(io) = outbox.io.take() {
            self.merge_io(io);
        }
        for (to, _, message) in outbox.send.drain(..) {
            self.send(to, &PeerMessage::Raft(message));
        }
        for (shard, entries) in outbox.apply.drain(..) {
            self.apply_entries(shard, entries, now);
        }
        for (shard, id, index) in outbox.reads.drain(..) {
            if let Some((asker, told)) = self.seats[usize::from(shard)].reads.remove(&id) {
                self.tell(asker, told.unwrap_or(Told::Index(index)), now);
            }
        }
        for (shard, id) in outbox.reads_lost.drain(..) {
            if let Some((asker, _)) = self.seats[usize::from(shard)].reads.remove(&id) {
                self.tell(asker, Told::NotLeader { leader: None }, now);
            }
        }
        for need in outbox.snapshots.drain(..) {
            self.snapshot_needed(need, now);
        }
        for shard in outbox.snapshots_wanted.drain(..) {
            self.snapshot_wanted(shard);
        }
        for (shard, start, conf) in outbox.install.drain(..) {
            self.snapshot_accepted(shard, start, conf);
        }
        self.outputs.asks.append(&mut outbox.asks);
        self.outputs.fetches.append(&mut outbox.snapshots_behind);
        if let Some(fault) = outbox.faults.drain(..).next() {
            self.outputs.halt = Some(crate::output::Halt::Engine(fault));
        }
    }

    /// Batches of several rounds become one: their records in order, the last number.
    fn merge_io(&mut self, io: Io) {
        match &mut self.outputs.io {
            None => self.outputs.io = Some(io),
            Some(first) => {
                first.seq = io.seq;
                first.must_sync |= io.must_sync;
                first.records.extend(io.records);
            }
        }
    }
}
