//! How much each namespace has in a shard. Counted along the way for every namespace, so that a quota holds from the
//! moment at which it is set.

use crate::Namespace;
use crate::shard::Index;

/// What one namespace has waiting in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) tasks: u64,
    pub(crate) bytes: u64,
}

impl Index {
    /// The place of a namespace that has a queue; made with its first one.
    pub(crate) fn open_space(&mut self, namespace: &Namespace) -> u32 {
        if let Some(space) = self.space_names.get(namespace) {
            return *space;
        }
        let space = self.spaces.len() as u32;
        self.spaces.push(Waiting::default());
        self.space_names.insert(namespace.clone(), space);
        space
    }

    /// An unfinished task of a queue came.
    pub(crate) fn came(&mut self, queue: u32, weight: u64) {
        self.pending_bytes += weight;
        let space = &mut self.spaces[self.space_of[queue as usize] as usize];
        space.tasks += 1;
        space.bytes += weight;
    }

    /// An unfinished task of a queue went, or is finished.
    pub(crate) fn went(&mut self, queue: u32, weight: u64) {
        self.pending_bytes -= weight;
        let space = &mut self.spaces[self.space_of[queue as usize] as usize];
        space.tasks -= 1;
        space.bytes -= weight;
    }

    /// What a namespace has waiting.
    pub(crate) fn waiting(&self, namespace: &Namespace) -> Waiting {
        let space = self.space_names.get(namespace);
        space.map_or_else(Waiting::default, |space| self.spaces[*space as usize])
    }

    /// Bytes of a namespace's objects.
    pub(crate) fn stored(&self, namespace: &Namespace) -> u64 {
        self.stored.get(namespace).copied().unwrap_or(0)
    }

    /// Bytes of an object came.
    pub(crate) fn store_more(&mut self, namespace: &Namespace, size: u64) {
        if size == 0 {
            return;
        }
        match self.stored.get_mut(namespace) {
            Some(bytes) => *bytes += size,
            None => drop(self.stored.insert(namespace.clone(), size)),
        }
    }

    /// Bytes of an object went.
    pub(crate) fn store_less(&mut self, namespace: &Namespace, size: u64) {
        if let Some(bytes) = self.stored.get_mut(namespace) {
            *bytes -= size;
            if *bytes == 0 {
                self.stored.remove(namespace);
            }
        }
    }
}
