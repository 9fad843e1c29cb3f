//! One node: a disk, the blobs on it while it is up, and what it has applied.

use ikada_state::{Lsn, Shard};
use ikada_store::blob::{Announced, Announcement, Candidates, Removable};
use ikada_store::{Blobs, SimDisk};

use super::{SHARDS, World, genesis};

/// How far a node's removal is.
#[derive(Debug)]
pub(super) enum Removal {
    Look(Candidates),
    Announce(Announcement),
    LookAgain(Announced),
    Remove(Removable),
}

pub(super) struct Node {
    pub(super) disk: SimDisk,
    /// None while it is down.
    pub(super) blobs: Option<Blobs<SimDisk>>,
    pub(super) grace_ms: u64,
    pub(super) states: [Shard; SHARDS],
    pub(super) removal: Option<Removal>,
}

impl Node {
    /// With an empty disk; down unless it is a member.
    pub(super) fn new(grace_ms: u64, is_member: bool) -> Node {
        let mut node =
            Node { disk: SimDisk::new(), blobs: None, grace_ms, states: genesis(), removal: None };
        if is_member {
            node.open(0);
        }
        node
    }

    fn open(&mut self, now_ms: u64) {
        self.blobs = Blobs::open(self.disk.clone(), self.grace_ms, now_ms).ok();
    }

    /// Whether no shard that it has applied refers to a blob.
    pub(super) fn is_free(&self, id: &[u8; 32]) -> bool {
        self.states.iter().all(|state| !state.refers_to(&ikada_state::Digest(*id)))
    }

    /// Applies committed entries up to a place.
    pub(super) fn apply_to(&mut self, shard: usize, log: &[Vec<u8>], to: usize) {
        let from = self.states[shard].applied().index as usize;
        let entries = log.iter().enumerate().take(to).skip(from);
        for (index, entry) in entries {
            let lsn = Lsn { term: 1, index: index as u64 + 1 };
            self.states[shard].apply(lsn, entry);
        }
    }
}

impl World {
    /// A node applies some of what is committed.
    pub(super) fn apply_some(&mut self, node: usize) {
        let shard = self.rng.usize(0..SHARDS);
        let (from, end) =
            (self.nodes[node].states[shard].applied().index as usize, self.logs[shard].len());
        if self.nodes[node].blobs.is_some() && from < end {
            let to = self.rng.usize(from..end) + 1;
            self.nodes[node].apply_to(shard, &self.logs[shard], to);
        }
    }

    /// A node applies all that is committed: what a linearizable look waits for.
    pub(super) fn catch_up(&mut self, node: usize) {
        for shard in 0..SHARDS {
            let log = &self.logs[shard];
            self.nodes[node].apply_to(shard, log, log.len());
        }
    }

    pub(super) fn crash(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        if node.blobs.take().is_none() {
            return;
        }
        node.removal = None;
        node.disk.crash(&mut self.rng);
        // It begins at an older snapshot and applies what follows again.
        node.states = genesis();
        for shard in 0..SHARDS {
            let to = self.rng.usize(0..=self.logs[shard].len());
            let log = &self.logs[shard];
            self.nodes[number].apply_to(shard, log, to);
        }
        self.drop_downloads(number);
        self.tally.crashed += 1;
    }

    pub(super) fn start(&mut self, node: usize) {
        if self.nodes[node].blobs.is_none() {
            self.nodes[node].open(self.now_ms);
        }
    }
}
