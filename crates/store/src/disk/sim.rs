//! A simulated disk: deterministic, in memory, and as treacherous as the contract allows.
//!
//! Every file has a durable image and a list of writes that no `sync` has covered; every name has a durable
//! state and a list of changes that no `sync_dir` has covered. A crash (`sim_crash.rs`) decides about each of
//! them with the caller's generator. Clones are handles on the same disk, so that the world around a
//! node can crash it, damage it and look at it while the node holds its own handle.
//!
//! Left out: permissions, folders as objects (a folder exists when something is in it), time.

use super::{Disk, DiskFile, check_name, parent};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a simulated disk has been asked to do so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimCounters {
    /// Calls of `write_at`.
    pub writes: u64,
    /// Calls of `sync` and `sync_dir`.
    pub syncs: u64,
    /// Bytes written.
    pub bytes: u64,
    /// All calls that change something, syncs included.
    pub operations: u64,
}

/// A change of one file that no sync has covered yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) durable: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) pending: Vec<Change>,
}

/// A change of a name that no folder sync has covered yet.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Link { name: String, node: u64 },
    Unlink { name: String },
    Move { from: String, to: String, node: u64 },
}

impl NameChange {
    fn is_in(&self, dir: &str) -> bool {
        match self {
            NameChange::Link { name, .. } | NameChange::Unlink { name } => parent(name) == dir,
            NameChange::Move { to, .. } => parent(to) == dir,
        }
    }

    pub(super) fn apply(self, names: &mut BTreeMap<String, u64>) {
        match self {
            NameChange::Link { name, node } => drop(names.insert(name, node)),
            NameChange::Unlink { name } => drop(names.remove(&name)),
            NameChange::Move { from, to, node } => {
                if names.get(&from) == Some(&node) {
                    names.remove(&from);
                }
                names.insert(to, node);
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<u64, Node>,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) durable_names: BTreeMap<String, u64>,
    pub(super) name_changes: Vec<NameChange>,
    pub(super) next_node: u64,
    /// Raised by a crash: handles from before it are dead.
    pub(super) era: u64,
    pub(super) counters: SimCounters,
    pub(super) fail_next_sync: bool,
    pub(super) misdirect_next_write: Option<u64>,
    /// Files whose next so many reads fail.
    pub(super) unreadable: BTreeMap<u64, u32>,
    pub(super) capacity: Option<u64>,
    pub(super) operations_left: Option<u64>,
}

/// The simulated disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    pub(super) world: Arc<Mutex<World>>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        // A panic while holding the lock leaves plain data behind, which a test may still want to read.
        self.world.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn file(&self, node: u64, era: u64) -> SimFile {
        SimFile { disk: self.clone(), node, era }
    }
}

pub(super) fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name}"))
}

impl World {
    /// Counts one changing operation; refuses once the planned crash point is reached.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.operations_left {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::other("disk stopped"))?;
        }
        self.counters.operations += 1;
        Ok(())
    }

    fn used(&self) -> u64 {
        self.names
            .values()
            .filter_map(|id| self.nodes.get(id))
            .map(|n| n.current.len() as u64)
            .sum()
    }

    /// Refuses growth beyond the capacity.
    fn reserve(&self, growth: usize) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if growth > 0 && self.used() + growth as u64 > capacity => {
                Err(io::Error::new(io::ErrorKind::StorageFull, "simulated disk is full"))
            }
            _ => Ok(()),
        }
    }

    fn fail_sync(&mut self) -> io::Result<()> {
        self.counters.syncs += 1;
        if std::mem::take(&mut self.fail_next_sync) {
            return Err(io::Error::from_raw_os_error(5)); // EIO
        }
        Ok(())
    }

    pub(super) fn named(&mut self, name: &str) -> io::Result<&mut Node> {
        let id = self.names.get(name).ok_or_else(|| not_found(name))?;
        self.nodes.get_mut(id).ok_or_else(|| not_found(name))
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn create(&self, name: &str) -> io::Result<SimFile> {
        check_name(name)?;
        let mut world = self.lock();
        world.begin()?;
        if let Some(&id) = world.names.get(name) {
            let node = world.named(name)?;
            node.current.clear();
            node.pending.push(Change::Length(0));
            return Ok(self.file(id, world.era));
        }
        let id = world.next_node;
        world.next_node += 1;
        world.nodes.insert(id, Node::default());
        world.names.insert(name.to_owned(), id);
        world.name_changes.push(NameChange::Link { name: name.to_owned(), node: id });
        Ok(self.file(id, world.era))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        check_name(name)?;
        let world = self.lock();
        let id = *world.names.get(name).ok_or_else(|| not_found(name))?;
        Ok(self.file(id, world.era))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let world = self.lock();
        let inside = world.names.keys().filter(|name| parent(name) == dir);
        let names = inside.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
        Ok(names.collect())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        check_name(name)?;
        Ok(self.lock().names.contains_key(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut world = self.lock();
        world.begin()?;
        world.names.remove(name).ok_or_else(|| not_found(name))?;
        world.name_changes.push(NameChange::Unlink { name: name.to_owned() });
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut world = self.lock();
        world.begin()?;
        let node = world.names.remove(from).ok_or_else(|| not_found(from))?;
        world.names.insert(to.to_owned(), node);
        let change = NameChange::Move { from: from.to_owned(), to: to.to_owned(), node };
        world.name_changes.push(change);
        Ok(())
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        check_name(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut world = self.lock();
        world.begin()?;
        world.fail_sync()?;
        let world = &mut *world;
        // In order, because a later change of a name builds on an earlier one.
        let (covered, rest) =
            std::mem::take(&mut world.name_changes).into_iter().partition(|c| c.is_in(dir));
        world.name_changes = rest;
        let covered: Vec<NameChange> = covered;
        for change in covered {
            change.apply(&mut world.durable_names);
        }
        world.drop_unreachable();
        Ok(())
    }
}

/// A file of the simulated disk.
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    node: u64,
    era: u64,
}

impl SimFile {
    fn with<T>(
        &self,
        changes: bool,
        act: impl FnOnce(&mut World, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut world = self.disk.lock();
        if world.era != self.era {
            return Err(io::Error::other("file handle from before a crash"));
        }
        if changes {
            world.begin()?;
        }
        act(&mut world, self.node)
    }
}

fn node(world: &mut World, id: u64) -> io::Result<&mut Node> {
    world.nodes.get_mut(&id).ok_or_else(|| io::Error::other("file was removed"))
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.with(false, |world, id| Ok(node(world, id)?.current.len() as u64))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.with(false, |world, id| {
            if let Some(left @ 1..) = world.unreadable.get_mut(&id) {
                *left -= 1;
                return Err(io::Error::from_raw_os_error(5)); // EIO
            }
            let current = &node(world, id)?.current;
            let from = usize::try_from(offset).map_or(current.len(), |o| o.min(current.len()));
            let count = bytes.len().min(current.len() - from);
            bytes[..count].copy_from_slice(&current[from..from + count]);
            Ok(count)
        })
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.with(true, |world, id| {
            let offset = world.misdirect_next_write.take().unwrap_or(offset) as usize;
            let length = node(world, id)?.current.len();
            world.reserve((offset + bytes.len()).saturating_sub(length))?;
            world.counters.writes += 1;
            world.counters.bytes += bytes.len() as u64;
            let node = node(world, id)?;
            put(&mut node.current, offset, bytes);
            node.pending.push(Change::Write { offset, bytes: bytes.to_vec() });
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(true, |world, id| {
            world.fail_sync()?;
            let node = node(world, id)?;
            for change in std::mem::take(&mut node.pending) {
                change.apply(&mut node.durable);
            }
            Ok(())
        })
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        let current = self.len()?;
        if length > current { self.set_len(length) } else { Ok(()) }
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.with(true, |world, id| {
            let growth = (length as usize).saturating_sub(node(world, id)?.current.len());
            world.reserve(growth)?;
            let node = node(world, id)?;
            node.current.resize(length as usize, 0);
            node.pending.push(Change::Length(length as usize));
            Ok(())
        })
    }
}

impl Change {
    pub(super) fn apply(self, image: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => put(image, offset, &bytes),
            Change::Length(length) => image.resize(length, 0),
        }
    }
}

pub(super) fn put(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if image.len() < offset + bytes.len() {
        image.resize(offset + bytes.len(), 0);
    }
    image[offset..offset + bytes.len()].copy_from_slice(bytes);
}
