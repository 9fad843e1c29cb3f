//! What goes wrong on a simulated disk: crashes, damage, refusals.
//!
//! A crash decides about each un-synced write on its own: kept, lost, or torn at sectors; and about each
//! un-synced change of a name: kept or lost. Everything covered by a sync stays. All randomness comes from
//! the caller's generator, so the same seed crashes the same way.

use super::sim::{Change, SimCounters, SimDisk, World, put};
use std::io;

const SECTOR_BYTES: usize = 512;

impl SimDisk {
    /// Power loss: un-synced work is kept, lost or torn; open handles die; planned faults are forgotten.
    pub fn crash(&self, rng: &mut fastrand::Rng) {
        let mut world = self.lock();
        let world = &mut *world;
        world.era += 1;
        world.operations_left = None;
        world.fail_next_sync = false;
        world.misdirect_next_write = None;
        for change in std::mem::take(&mut world.name_changes) {
            if rng.bool() {
                change.apply(&mut world.durable_names);
            }
        }
        world.names = world.durable_names.clone();
        for node in world.nodes.values_mut() {
            for change in std::mem::take(&mut node.pending) {
                survive(change, &mut node.durable, rng);
            }
            node.current.clone_from(&node.durable);
        }
        world.drop_unreachable();
    }

    /// The process died but the machine lives: everything written is there, handles die.
    pub fn kill(&self) {
        let mut world = self.lock();
        world.era += 1;
        world.operations_left = None;
    }

    /// Takes planned faults back: the next sync and the next write go as they should.
    pub fn forget_faults(&self) {
        let mut world = self.lock();
        world.fail_next_sync = false;
        world.misdirect_next_write = None;
    }

    /// Flips one bit of a file, also in its durable image.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) -> io::Result<()> {
        let mut world = self.lock();
        let node = world.named(name)?;
        let offset = offset as usize;
        if offset >= node.current.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "offset beyond the file"));
        }
        node.current[offset] ^= 1 << (bit % 8);
        if let Some(byte) = node.durable.get_mut(offset) {
            *byte ^= 1 << (bit % 8);
        }
        Ok(())
    }

    /// Replaces a whole file behind everyone's back, durably (an older copy, another node's file).
    pub fn overwrite(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.lock();
        if !world.names.contains_key(name) {
            let id = world.next_node;
            world.next_node += 1;
            world.nodes.insert(id, super::sim::Node::default());
            world.names.insert(name.to_owned(), id);
            world.durable_names.insert(name.to_owned(), id);
        }
        let node = world.named(name)?;
        node.current = bytes.to_vec();
        node.durable = bytes.to_vec();
        node.pending.clear();
        Ok(())
    }

    /// The next write lands at this offset of its file instead of where it was meant to go.
    pub fn misdirect_next_write(&self, offset: u64) {
        self.lock().misdirect_next_write = Some(offset);
    }

    /// So many further reads of a file fail with EIO, whatever it is called by then.
    pub fn fail_reads(&self, name: &str, count: u32) -> io::Result<()> {
        let mut world = self.lock();
        let id = *world.names.get(name).ok_or_else(|| super::sim::not_found(name))?;
        world.unreadable.insert(id, count);
        Ok(())
    }

    /// The next sync (of a file or a folder) fails with EIO and covers nothing.
    pub fn fail_next_sync(&self) {
        self.lock().fail_next_sync = true;
    }

    /// Limits the sum of all file lengths; `None` lifts the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// After this many further changing operations every one fails, until the next crash or kill.
    pub fn stop_after(&self, operations: u64) {
        self.lock().operations_left = Some(operations);
    }

    /// All file names with their lengths, for the planner of faults.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let world = self.lock();
        let length = |id: &u64| world.nodes.get(id).map_or(0, |node| node.current.len() as u64);
        world.names.iter().map(|(name, id)| (name.clone(), length(id))).collect()
    }

    /// What the disk was asked to do.
    #[must_use]
    pub fn counters(&self) -> SimCounters {
        self.lock().counters
    }

    /// An independent copy of everything, pending changes included.
    #[must_use]
    pub fn fork(&self) -> SimDisk {
        let world = self.lock();
        let copy = World {
            nodes: world.nodes.clone(),
            names: world.names.clone(),
            durable_names: world.durable_names.clone(),
            name_changes: world.name_changes.clone(),
            capacity: world.capacity,
            fail_next_sync: world.fail_next_sync,
            misdirect_next_write: world.misdirect_next_write,
            unreadable: world.unreadable.clone(),
            operations_left: world.operations_left,
            ..World { next_node: world.next_node, era: world.era, ..World::default() }
        };
        SimDisk { world: std::sync::Arc::new(std::sync::Mutex::new(copy)) }
    }
}

impl World {
    /// Forgets content that no name, durable or current, leads to.
    pub(super) fn drop_unreachable(&mut self) {
        if self.nodes.len() <= self.names.len() + self.name_changes.len() {
            return;
        }
        let mut reachable: Vec<u64> =
            self.names.values().chain(self.durable_names.values()).copied().collect();
        reachable.extend(self.name_changes.iter().filter_map(|change| match change {
            super::sim::NameChange::Link { node, .. }
            | super::sim::NameChange::Move { node, .. } => Some(*node),
            super::sim::NameChange::Unlink { .. } => None,
        }));
        reachable.sort_unstable();
        self.nodes.retain(|id, _| reachable.binary_search(id).is_ok());
    }
}

/// Decides what is left of one un-synced change.
fn survive(change: Change, image: &mut Vec<u8>, rng: &mut fastrand::Rng) {
    let fate = rng.u8(0..3);
    match change {
        change if fate == 0 => change.apply(image),
        Change::Write { offset, bytes } if fate == 1 => {
            // Sectors are cut at the disk's own boundaries, not at the write's.
            let mut from = 0;
            while from < bytes.len() {
                let room = SECTOR_BYTES - (offset + from) % SECTOR_BYTES;
                let to = bytes.len().min(from + room);
                if rng.bool() {
                    put(image, offset + from, &bytes[from..to]);
                }
                from = to;
            }
        }
        Change::Write { .. } | Change::Length(_) => {}
    }
}
