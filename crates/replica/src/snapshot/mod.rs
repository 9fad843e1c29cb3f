//! Snapshots: saved when the log has grown, sent to members that lag too far, loaded when received.
//!
//! Promise: the hot path only clones cheaply and hands work out; the receiver pulls chunk by chunk, so that it sets the
//! pace and any step may be lost; nothing is loaded before every chunk was checked and made durable.

mod load;
mod receive;
mod save;
mod send;

use std::collections::BTreeMap;

use ikada_consensus::{Message, NodeId, Start};
use ikada_state::ShardId;

use crate::output::{Now, SnapshotDone};
use crate::peer::SnapshotMessage;
use crate::replica::Replica;

/// Transfers under way on this node.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    /// What this node, as leader, is sending.
    pub sending: BTreeMap<(ShardId, NodeId), Sending>,
    /// What this node is receiving.
    pub receiving: BTreeMap<ShardId, Receiving>,
}

/// A snapshot on its way to a peer.
#[derive(Debug)]
pub(crate) struct Sending {
    pub start: Start,
    pub message: Message,
    /// When it was offered last.
    pub offered_ms: u64,
    /// Last sign of progress.
    pub heard_ms: u64,
}

/// A snapshot being received.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub from: NodeId,
    pub start: Start,
    pub message: Message,
    /// How many chunks there are, once the manifest is accepted.
    pub chunks: Option<u32>,
    /// The chunk wanted next.
    pub next: u32,
    /// The chunk before it is still being written: nothing may be judged complete meanwhile.
    pub writing: bool,
    /// When it was asked for.
    pub asked_ms: u64,
    /// Last sign of progress.
    pub heard_ms: u64,
}

impl Replica {
    pub(crate) fn snapshot_message(&mut self, from: NodeId, step: SnapshotMessage, now: Now) {
        match step {
            SnapshotMessage::Offer { shard, start, manifest, message } => {
                self.snapshot_offer(from, shard, start, manifest, message, now);
            }
            SnapshotMessage::Want { shard, start, chunk } => {
                self.chunk_wanted(from, shard, start, chunk, now);
            }
            SnapshotMessage::Chunk { shard, start, chunk, bytes } => {
                self.chunk_arrived(from, shard, start, chunk, bytes, now);
            }
            SnapshotMessage::End { shard, ok } => self.transfer_ended(from, shard, ok),
        }
    }

    pub(crate) fn snapshot_done(&mut self, done: SnapshotDone, now: Now) {
        match done {
            SnapshotDone::Saved { shard, conf, .. } if self.opening == Some(shard) => {
                self.added_saved(shard, conf, now);
            }
            SnapshotDone::SaveFailed { shard } if self.opening == Some(shard) => {
                self.opening = None;
            }
            SnapshotDone::Saved { shard, start, conf, bytes } => {
                self.snapshot_saved(shard, start, conf, bytes);
            }
            SnapshotDone::SaveFailed { shard } => {
                self.seats[usize::from(shard)].snapshot.saving = false;
            }
            SnapshotDone::Manifest { shard, to, found } => {
                self.manifest_read(shard, to, found, now)
            }
            SnapshotDone::Chunk { shard, start, chunk, to, bytes } => {
                self.chunk_read(shard, start, chunk, to, bytes);
            }
            SnapshotDone::Receiving { shard, start, chunks } => {
                self.receiving(shard, start, chunks, now);
            }
            SnapshotDone::Wrote { shard, start, chunk, ok } => {
                self.chunk_written(shard, start, chunk, ok, now);
            }
            SnapshotDone::Loaded { shard, start, state } => {
                self.snapshot_loaded(shard, start, state, now);
            }
        }
    }
}
