//! What nodes do about their blobs on their own: removal, step by step; scrub; repair. And the damage they do it for.

use ikada_state::{Collect, Command, Digest, Reply};

use super::node::Removal;
use super::{Mischief, World};

impl World {
    /// One step of a node's removal.
    pub(super) fn collect(&mut self, node: usize) {
        let now_ms = self.now_ms;
        // Taken out for the step, since looks and commits need the world.
        let Some(blobs) = self.nodes[node].blobs.take() else { return };
        let next = match self.nodes[node].removal.take() {
            None => {
                // Not always the same folder first, or those behind it would never be looked at.
                let start = self.rng.u8(..);
                let found = (0..=u8::MAX).find_map(|step| {
                    let first = start.wrapping_add(step);
                    blobs.candidates(first, 8, now_ms).ok()?.into_iter().next()
                });
                found.map(Removal::Look)
            }
            Some(Removal::Look(candidates)) => {
                let free = self.look(node, candidates.ids());
                Some(Removal::Announce(candidates.looked(&free)))
            }
            Some(Removal::Announce(announcement)) => {
                let digests: Vec<Digest> = announcement.ids().iter().copied().map(Digest).collect();
                let collect = Collect { node: node as u64 + 1, digests: digests.into() };
                let committed = self.commit(0, Command::Collect(collect)) == Reply::Collected;
                committed.then(|| Removal::LookAgain(announcement.committed()))
            }
            Some(Removal::LookAgain(announced)) => {
                let free = self.look(node, announced.ids());
                Some(Removal::Remove(announced.looked(&free)))
            }
            Some(Removal::Remove(removable)) => {
                let removed = blobs.remove_all(&removable, now_ms).unwrap_or(0);
                self.tally.removed += removed;
                self.tally.removals_stopped += removable.ids().len() as u64 - removed;
                None
            }
        };
        self.nodes[node].removal = next;
        self.nodes[node].blobs = Some(blobs);
    }

    /// A linearizable look: the node has applied everything that was committed before.
    fn look(&mut self, node: usize, ids: &[[u8; 32]]) -> Vec<[u8; 32]> {
        if self.mischief != Mischief::StaleLooks {
            self.catch_up(node);
        }
        ids.iter().filter(|id| self.nodes[node].is_free(id)).copied().collect()
    }

    /// Flips a bit of one blob, if the other nodes can make up for it.
    pub(super) fn rot(&mut self, node: usize) {
        let files: Vec<(String, u64)> =
            self.nodes[node].disk.files().into_iter().filter(|(name, _)| is_blob(name)).collect();
        if files.is_empty() {
            return;
        }
        let (file, length) = &files[self.rng.usize(0..files.len())];
        let name = file.rsplit('/').next().unwrap_or("");
        let elsewhere = |other: &usize| *other != node && self.whole_copy(*other, name);
        if self.members.iter().filter(|other| elsewhere(other)).count() + 1 < self.members.len() {
            return;
        }
        let (offset, bit) = (self.rng.u64(0..*length), self.rng.u8(0..8));
        if self.nodes[node].disk.flip_bit(file, offset, bit).is_ok() {
            self.note_rot(node, name);
            self.lost.insert((node, name.to_owned()));
            self.tally.rotten += 1;
        }
    }

    pub(super) fn scrub(&mut self, node: usize) {
        let Some(blobs) = &self.nodes[node].blobs else { return };
        if self.mischief != Mischief::NoScrub {
            for first in 0..=u8::MAX {
                for id in blobs.list(first).unwrap_or_default() {
                    let _ = blobs.get(&id);
                }
            }
        }
    }

    /// A node fetches what its own state refers to and its disk lacks.
    pub(super) fn repair(&mut self, node: usize) {
        let Some(blobs) = &self.nodes[node].blobs else { return };
        let wanted = self.nodes[node].states[1].references(None, usize::MAX).digests;
        for Digest(id) in wanted {
            if blobs.exists(&id).unwrap_or(true) {
                continue;
            }
            let others = self.nodes.iter().filter_map(|other| other.blobs.as_ref());
            let found = others.filter_map(|other| other.get(&id).ok().flatten()).next();
            if let Some(bytes) = found {
                self.tally.repaired += u64::from(blobs.put(&id, &bytes, self.now_ms).is_ok());
            }
        }
    }
}

pub(super) fn is_blob(name: &str) -> bool {
    name.starts_with("blob/") && !name.ends_with(".tmp")
}
