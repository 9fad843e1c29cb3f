//! The receiver's side of a transfer: pull every chunk, then let the engine decide.

use bytes::Bytes;
use ikada_consensus::{Message, NodeId, Start};
use ikada_state::ShardId;

use crate::output::{Now, SnapshotWork};
use crate::peer::{PeerMessage, SnapshotMessage};
use crate::replica::Replica;
use crate::snapshot::Receiving;

/// An unanswered wish for a chunk is repeated after this long.
const WANT_AGAIN_MS: u64 = 500;
/// A transfer without progress for this long is dropped.
const RECEIVE_SILENCE_MS: u64 = 10_000;

impl Replica {
    /// A leader offers a snapshot. One at a time per shard; a newer offer replaces an older one.
    pub(crate) fn snapshot_offer(
        &mut self,
        from: NodeId,
        shard: ShardId,
        start: Start,
        manifest: Bytes,
        message: Message,
        now: Now,
    ) {
        let Some(seat) = self.seats.get(usize::from(shard)) else {
            return;
        };
        let stale = start.index <= seat.state.applied().index || seat.loading.is_some();
        let busy = self
            .transfers
            .receiving
            .get(&shard)
            .is_some_and(|receiving| receiving.start == start && receiving.from == from);
        if message.snapshot().is_none_or(|(point, _)| point != start) || busy {
            return;
        }
        if stale {
            // The engine answers an outdated snapshot with our real position.
            self.consensus.snapshot_offered(shard, from, message);
            self.send(from, &PeerMessage::Snapshot(SnapshotMessage::End { shard, ok: true }));
            return;
        }
        let receiving = Receiving {
            from,
            start,
            message,
            chunks: None,
            next: 0,
            writing: false,
            asked_ms: now.mono_ms,
            heard_ms: now.mono_ms,
        };
        self.transfers.receiving.insert(shard, receiving);
        self.outputs.snapshots.push(SnapshotWork::Receive { shard, start, manifest });
    }

    pub(crate) fn receiving(
        &mut self,
        shard: ShardId,
        start: Start,
        chunks: Option<u32>,
        now: Now,
    ) {
        let Some(receiving) = self.transfers.receiving.get_mut(&shard) else {
            return;
        };
        if receiving.start != start {
            return;
        }
        match chunks {
            None => self.give_up_receiving(shard),
            Some(chunks) => {
                receiving.chunks = Some(chunks);
                self.want_next(shard, now);
            }
        }
    }

    fn want_next(&mut self, shard: ShardId, now: Now) {
        let Some(receiving) = self.transfers.receiving.get_mut(&shard) else {
            return;
        };
        let Some(chunks) = receiving.chunks else {
            return;
        };
        if receiving.writing {
            return;
        }
        if receiving.next >= chunks {
            return self.all_received(shard);
        }
        receiving.asked_ms = now.mono_ms;
        let (from, start, chunk) = (receiving.from, receiving.start, receiving.next);
        self.send(from, &PeerMessage::Snapshot(SnapshotMessage::Want { shard, start, chunk }));
    }

    pub(crate) fn chunk_arrived(
        &mut self,
        from: NodeId,
        shard: ShardId,
        start: Start,
        chunk: u32,
        bytes: Bytes,
        now: Now,
    ) {
        let Some(receiving) = self.transfers.receiving.get_mut(&shard) else {
            return;
        };
        if receiving.from != from || receiving.start != start || receiving.next != chunk {
            return;
        }
        receiving.heard_ms = now.mono_ms;
        // Moving on here keeps a repeated chunk from being written twice.
        receiving.next += 1;
        receiving.writing = true;
        self.outputs.snapshots.push(SnapshotWork::Write { shard, start, chunk, bytes });
    }

    pub(crate) fn chunk_written(
        &mut self,
        shard: ShardId,
        start: Start,
        chunk: u32,
        ok: bool,
        now: Now,
    ) {
        let Some(receiving) = self.transfers.receiving.get_mut(&shard) else {
            return;
        };
        if receiving.start != start || receiving.next != chunk + 1 {
            return;
        }
        receiving.writing = false;
        if !ok {
            // The chunk did not match its hash: ask for it again.
            receiving.next = chunk;
        }
        self.want_next(shard, now);
    }

    /// Every chunk is durable: the sender is told, and the engine decides whether it still wants it.
    fn all_received(&mut self, shard: ShardId) {
        let Some(receiving) = self.transfers.receiving.remove(&shard) else {
            return;
        };
        let end = SnapshotMessage::End { shard, ok: true };
        self.send(receiving.from, &PeerMessage::Snapshot(end));
        self.consensus.snapshot_offered(shard, receiving.from, receiving.message);
    }

    fn give_up_receiving(&mut self, shard: ShardId) {
        let Some(receiving) = self.transfers.receiving.remove(&shard) else {
            return;
        };
        let end = SnapshotMessage::End { shard, ok: false };
        self.send(receiving.from, &PeerMessage::Snapshot(end));
    }

    pub(crate) fn tend_receiving(&mut self, now: Now) {
        let shards: Vec<ShardId> = self.transfers.receiving.keys().copied().collect();
        for shard in shards {
            let Some(receiving) = self.transfers.receiving.get(&shard) else {
                continue;
            };
            if now.mono_ms.saturating_sub(receiving.heard_ms) > RECEIVE_SILENCE_MS {
                self.give_up_receiving(shard);
            } else if receiving.chunks.is_some()
                && now.mono_ms.saturating_sub(receiving.asked_ms) > WANT_AGAIN_MS
            {
                self.want_next(shard, now);
            }
        }
    }
}
