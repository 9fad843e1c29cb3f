//! A small world of its own for the bytes of objects: node loss during uploads, members that come and leave meanwhile, bit
//! rot, removal that races uploads, downloads and lagging nodes; from a seed, on one thread.
//!
//! It runs the store's blobs on simulated disks, the state machine, and the removal's steps as the node runs them. The
//! log is simply a list of committed entries that each node applies when it likes: elections have a world of their own.
//!
//! Checks, after every step: every piece of every committed object is on as many disks of members as made a majority when it
//! was committed, or when a member left since, damaged copies counted; and at least one copy is whole (A2, A3). Bytes that a reader gets are those that were written (A1), and no removal takes
//! a piece from under a reader that had it. After healing:
//! every member has every piece, and nothing else.

mod check;
mod download;
mod keep;
mod members;
mod node;
mod upload;

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use ikada_state::{Command, Lsn, Namespace, Order, Shard};

use download::Download;
use node::Node;
use upload::Upload;

/// Machines of this world; a node that leaves is followed by another one on a fresh disk.
const NODES: usize = 5;
/// Fewest members; so many found the cluster.
const MEMBERS_MIN: usize = 3;
/// Shards: the first takes announcements, the second holds the objects.
const SHARDS: usize = 2;
/// How long a pin lasts.
const GRACE_MS: u64 = 1_000;
/// Most uploads under way.
const UPLOADS_MAX: usize = 4;

/// A defect of the protocol, put in on purpose to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mischief {
    /// None.
    Nothing,
    /// "Stored" pins nothing.
    NoPins,
    /// A name is committed when one node has the bytes.
    OneCopy,
    /// The looks see what the node happens to have applied.
    StaleLooks,
    /// Damaged files are left in place and served.
    NoScrub,
    /// A download keeps nothing from being removed.
    NoReaderPins,
    /// A name is committed however long ago its bytes were stored.
    NoReconfirm,
    /// A name is committed although members came or left since its bytes were stored.
    NoRecount,
    /// A member leaves whatever the others have.
    LeaveBlindly,
}

impl Mischief {
    /// All of them.
    pub const ALL: [Mischief; 8] = [
        Mischief::NoPins,
        Mischief::OneCopy,
        Mischief::StaleLooks,
        Mischief::NoScrub,
        Mischief::NoReaderPins,
        Mischief::NoReconfirm,
        Mischief::NoRecount,
        Mischief::LeaveBlindly,
    ];
}

/// The world.
pub struct World {
    rng: Rng,
    mischief: Mischief,
    now_ms: u64,
    nodes: Vec<Node>,
    /// Who is a member, in order.
    members: Vec<usize>,
    /// On how many members each piece must be.
    promised: BTreeMap<[u8; 32], usize>,
    /// Committed entries of each shard.
    logs: [Vec<Vec<u8>>; SHARDS],
    /// What all committed entries come to.
    truth: [Shard; SHARDS],
    uploads: Vec<Upload>,
    downloads: Vec<Download>,
    /// Copies that rotted and were not replaced yet, by node and digest.
    lost: BTreeSet<(usize, String)>,
    /// What each digest's bytes are.
    contents: BTreeMap<[u8; 32], Vec<u8>>,
    /// What happened how often, so that a test can tell that it tested something.
    pub tally: Tally,
}

/// What happened how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Each name says it.
pub struct Tally {
    pub put: u64,
    pub given_up: u64,
    pub reconfirmed: u64,
    pub deleted: u64,
    pub crashed: u64,
    pub rotten: u64,
    pub repaired: u64,
    pub removed: u64,
    pub removals_stopped: u64,
    pub read: u64,
    pub downloaded: u64,
    pub cut_short: u64,
    pub joined: u64,
    pub left: u64,
    pub kept_from_leaving: u64,
    pub recounted: u64,
}

impl Tally {
    /// All counts, in the order above.
    pub fn counts(&self) -> Vec<u64> {
        let Tally { put, given_up, reconfirmed, deleted, crashed, rotten, .. } = *self;
        let Tally { repaired, removed, removals_stopped, read, downloaded, cut_short, .. } = *self;
        let Tally { joined, left, kept_from_leaving, recounted, .. } = *self;
        let bytes = [put, given_up, reconfirmed, deleted, crashed, rotten];
        let kept = [repaired, removed, removals_stopped, read, downloaded, cut_short];
        let members = [joined, left, kept_from_leaving, recounted];
        bytes.into_iter().chain(kept).chain(members).collect()
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.put += other.put;
        self.given_up += other.given_up;
        self.reconfirmed += other.reconfirmed;
        self.deleted += other.deleted;
        self.crashed += other.crashed;
        self.rotten += other.rotten;
        self.repaired += other.repaired;
        self.removed += other.removed;
        self.removals_stopped += other.removals_stopped;
        self.read += other.read;
        self.downloaded += other.downloaded;
        self.cut_short += other.cut_short;
        self.joined += other.joined;
        self.left += other.left;
        self.kept_from_leaving += other.kept_from_leaving;
        self.recounted += other.recounted;
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

fn genesis() -> [Shard; SHARDS] {
    [Shard::genesis(0, SHARDS as u16, &[]), Shard::genesis(1, SHARDS as u16, &[])]
}

impl World {
    /// A world from a seed.
    pub fn new(seed: u64, mischief: Mischief) -> World {
        let grace_ms = if mischief == Mischief::NoPins { 0 } else { GRACE_MS };
        World {
            rng: Rng::with_seed(seed),
            mischief,
            now_ms: 0,
            nodes: (0..NODES).map(|number| Node::new(grace_ms, number < MEMBERS_MIN)).collect(),
            members: (0..MEMBERS_MIN).collect(),
            promised: BTreeMap::new(),
            logs: [Vec::new(), Vec::new()],
            truth: genesis(),
            uploads: Vec::new(),
            downloads: Vec::new(),
            lost: BTreeSet::new(),
            contents: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// Takes so many steps, checks after each, heals, and checks the end.
    pub fn run(&mut self, steps: u32) -> Result<(), Broken> {
        for _ in 0..steps {
            self.step()?;
            self.check()?;
        }
        self.heal()
    }

    fn step(&mut self) -> Result<(), Broken> {
        let node = self.members[self.rng.usize(0..self.members.len())];
        match self.rng.u8(0..102) {
            0..=9 => self.begin_upload(),
            10..=39 => self.advance_upload(),
            40..=44 => self.delete(),
            45..=54 => self.apply_some(node),
            55..=57 => self.crash(node),
            58..=63 => self.start(node),
            64..=71 => self.now_ms += self.rng.u64(1..GRACE_MS / 3),
            72..=84 => self.collect(node),
            85..=87 => self.rot(node),
            88..=89 => self.scrub(node),
            90..=92 => self.repair(node),
            93..=94 => self.begin_download(node),
            95..=98 => self.advance_download()?,
            99 => self.read(node)?,
            100 => self.join(),
            _ => self.leave(node),
        }
        Ok(())
    }

    /// Commits an order; whoever applies it later does so in this order.
    fn commit(&mut self, shard: usize, command: Command) -> ikada_state::Reply {
        let mut batch = ikada_state::BatchBuilder::new();
        batch.push(&Order { namespace: Namespace::default(), request: None, command });
        let entry = batch.finish(self.now_ms);
        self.logs[shard].push(entry.clone());
        let lsn = Lsn { term: 1, index: self.logs[shard].len() as u64 };
        let applied = self.truth[shard].apply(lsn, &entry);
        let refused = ikada_state::RefusalCode::BadCommand;
        applied.replies.into_iter().next().unwrap_or(ikada_state::Reply::refused(refused))
    }
}

#[cfg(test)]
mod blobs_test;
