//! The leader's side of a transfer: offer, answer what is wanted, note the end.

use bytes::Bytes;
use ikada_consensus::{NodeId, SnapshotNeed, Start};
use ikada_state::ShardId;

use crate::output::{Now, SnapshotWork};
use crate::peer::{PeerMessage, SnapshotMessage};
use crate::replica::Replica;
use crate::snapshot::Sending;

/// An offer that nobody reacts to is made again after this long: it may have been lost, or the receiver restarted.
const OFFER_AGAIN_MS: u64 = 1_000;
/// A transfer without a sign of progress for this long has failed; the engine will ask for another.
const SEND_SILENCE_MS: u64 = 15_000;

impl Replica {
    /// The engine wants a member to have a snapshot.
    pub(crate) fn snapshot_needed(&mut self, need: SnapshotNeed, now: Now) {
        let SnapshotNeed { shard, to, start, message, .. } = need;
        let sending = Sending { start, message, offered_ms: now.mono_ms, heard_ms: now.mono_ms };
        self.transfers.sending.insert((shard, to), sending);
        self.outputs.snapshots.push(SnapshotWork::Describe { shard, to });
    }

    pub(crate) fn manifest_read(
        &mut self,
        shard: ShardId,
        to: NodeId,
        found: Option<(Start, Bytes)>,
        now: Now,
    ) {
        let Some(sending) = self.transfers.sending.get_mut(&(shard, to)) else {
            return;
        };
        match found {
            Some((start, manifest)) if start == sending.start => {
                sending.offered_ms = now.mono_ms;
                let message = sending.message.clone();
                let offer = SnapshotMessage::Offer { shard, start, manifest, message };
                self.send(to, &PeerMessage::Snapshot(offer));
            }
            _ => self.transfer_ended(to, shard, false),
        }
    }

    pub(crate) fn chunk_wanted(
        &mut self,
        from: NodeId,
        shard: ShardId,
        start: Start,
        chunk: u32,
        now: Now,
    ) {
        if let Some(sending) = self.transfers.sending.get_mut(&(shard, from)) {
            sending.heard_ms = now.mono_ms;
        }
        // Served even after leadership was lost: the bytes are the same for everyone.
        self.outputs.snapshots.push(SnapshotWork::Read { shard, start, chunk, to: from });
    }

    pub(crate) fn chunk_read(
        &mut self,
        shard: ShardId,
        start: Start,
        chunk: u32,
        to: NodeId,
        bytes: Option<Bytes>,
    ) {
        let step = match bytes {
            Some(bytes) => SnapshotMessage::Chunk { shard, start, chunk, bytes },
            None => return self.transfer_ended(to, shard, false),
        };
        self.send(to, &PeerMessage::Snapshot(step));
    }

    /// The receiver has it all, or the transfer failed: the engine goes on from there.
    pub(crate) fn transfer_ended(&mut self, peer: NodeId, shard: ShardId, ok: bool) {
        if self.transfers.sending.remove(&(shard, peer)).is_some() {
            self.consensus.snapshot_result(shard, peer, ok);
        }
    }

    /// Transfers that fell silent are offered again, and given up in the end.
    pub(crate) fn tend_transfers(&mut self, now: Now) {
        for ((shard, to), sending) in &mut self.transfers.sending {
            let newest_ms = sending.offered_ms.max(sending.heard_ms);
            if now.mono_ms.saturating_sub(newest_ms) > OFFER_AGAIN_MS {
                sending.offered_ms = now.mono_ms;
                let work = SnapshotWork::Describe { shard: *shard, to: *to };
                self.outputs.snapshots.push(work);
            }
        }
        let silent: Vec<_> = self
            .transfers
            .sending
            .iter()
            .filter(|(_, sending)| now.mono_ms.saturating_sub(sending.heard_ms) > SEND_SILENCE_MS)
            .map(|(key, _)| *key)
            .collect();
        for (shard, peer) in silent {
            self.transfer_ended(peer, shard, false);
        }
        self.tend_receiving(now);
    }
}
