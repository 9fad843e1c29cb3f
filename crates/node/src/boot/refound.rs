//! A new cluster that begins with given states: from a backup, from the one disk that was left, or from an older database.
//! With logs in its folders it has one node; with logs in a database all its nodes are named here, and one gets a folder.
//!
//! Promise: the snapshots on the new disk are the given states, with their hashes; what is new (members, the restore
//! epoch) follows as the first entry of each log. The cluster id is a fresh one, so that no node of the old cluster can
//! join. The folder must be empty, and its identity is written last, after the bytes of objects.

use std::path::Path;

use bytes::Bytes;
use ikada_replica::consensus::{Conf, EntryKind};
use ikada_replica::founding::{Candidate, Plan};
use ikada_replica::state::{BatchBuilder, Command, Digest, Namespace, Order, Refound, Shard};
use ikada_store::{BlobError, Blobs, Identity, Log, LogOptions, RealDisk, Record, Snapshots};

use super::genesis::members;
use super::papers::{Papers, PapersError};
use super::recover::BootError;

/// Why no cluster was made.
#[derive(Debug, thiserror::Error)]
pub enum RefoundError {
    /// The folder is not empty.
    #[error("{path} is not empty; name a folder that does not exist yet")]
    NotEmpty {
        /// The folder.
        path: String,
    },
    /// The folder cannot be written.
    #[error("{path}: {source}")]
    Folder {
        /// The folder.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The epochs are used up.
    #[error("the restore epoch is {0} already, the highest there is")]
    EpochsUsedUp(u16),
    /// The asked epoch is not higher.
    #[error("--epoch {asked} must be above {current}, the epoch of what is restored")]
    EpochTooLow {
        /// As asked.
        asked: u16,
        /// Of the states.
        current: u16,
    },
    /// The bytes of objects cannot be had.
    #[error("{why}")]
    Pieces {
        /// What is wrong.
        why: String,
    },
    /// Writing failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// Writing failed.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// Writing failed.
    #[error(transparent)]
    Papers(#[from] PapersError),
}

/// What the new cluster is to be.
#[derive(Debug, Clone)]
pub struct Refounding {
    /// Its only node, or the first.
    pub node: u64,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Its restore epoch; the next one when absent.
    pub epoch: Option<u16>,
    /// Whether its logs will live in a database; the entries are then not written here.
    pub in_database: bool,
    /// The other nodes, each by id, address for peers and address for clients. Only with logs in a database.
    pub others: Vec<(u64, String, String)>,
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Refounded {
    /// The cluster.
    pub plan: Plan,
    /// Its restore epoch.
    pub epoch: u16,
    /// The first entry of each log.
    pub first: Vec<Bytes>,
}

/// Where the bytes of objects come from: gives the next piece until there is none.
pub type Pieces<'a> = &'a mut dyn FnMut() -> Result<Option<(Digest, Vec<u8>)>, String>;

/// Makes the data folder of a new cluster of one node with these states, in order of their shards, and these bytes of
/// objects. Gives the cluster as it is to be. When it fails, nothing is left of what it made.
pub fn refound(
    folder: &Path,
    wish: &Refounding,
    states: &[Shard],
    pieces: Pieces,
) -> Result<Refounded, RefoundError> {
    let path = folder.display().to_string();
    let broken = |source| RefoundError::Folder { path: path.clone(), source };
    let was_there = folder.exists();
    std::fs::create_dir_all(folder).map_err(broken)?;
    if std::fs::read_dir(folder).map_err(broken)?.next().is_some() {
        return Err(RefoundError::NotEmpty { path });
    }
    let made = fill(folder, wish, states, pieces);
    if made.is_err() {
        // It was empty before; a half-made node must not be started by mistake.
        std::fs::remove_dir_all(folder).map_err(broken)?;
        if was_there {
            std::fs::create_dir(folder).map_err(broken)?;
        }
    }
    made
}

fn fill(
    folder: &Path,
    wish: &Refounding,
    states: &[Shard],
    pieces: Pieces,
) -> Result<Refounded, RefoundError> {
    let path = folder.display().to_string();
    let broken = |source| RefoundError::Folder { path: path.clone(), source };
    let epoch = next_epoch(states, wish.epoch)?;
    let disk = RealDisk::open(folder).map_err(broken)?;
    let blobs = Blobs::open(disk.clone(), 0, 0)?;
    while let Some((digest, bytes)) = pieces().map_err(|why| RefoundError::Pieces { why })? {
        blobs.put(&digest.0, &bytes, 0)?;
    }
    let mut draw = fastrand::Rng::new();
    let (cluster, incarnation) = (draw.u64(1..), draw.u64(1..));
    let me = (wish.node, wish.peer_addr.clone(), wish.client_addr.clone());
    let nodes = [me].into_iter().chain(wish.others.iter().cloned());
    let mut members: Vec<Candidate> = nodes
        .map(|(node, peer_addr, client_addr)| {
            let incarnation = if node == wish.node { incarnation } else { draw.u64(1..) };
            Candidate { node, incarnation, peer_addr, client_addr }
        })
        .collect();
    members.sort_by_key(|member| member.node);
    let plan = Plan { cluster, members, shards: states.len() as u16 };
    let papers = Papers {
        node: wish.node,
        incarnation,
        promise: Some(plan.clone()),
        worked: true,
        members: None,
        in_database: wish.in_database,
    };
    papers.store(&disk)?;
    let identity = Identity { cluster, node: wish.node, incarnation, name: String::new() };
    let first: Vec<Bytes> = states.iter().map(|state| first_entry(&plan, epoch, state)).collect();
    let entries = if wish.in_database { &[] } else { first.as_slice() };
    write_states(&disk, &identity, &plan, states, entries)?;
    identity.store(&disk).map_err(BootError::from)?;
    Ok(Refounded { plan, epoch, first })
}

/// What is new: the members and the restore epoch.
fn first_entry(plan: &Plan, epoch: u16, state: &Shard) -> Bytes {
    let command = Command::Refound(Refound { epoch, members: members(plan) });
    let mut batch = BatchBuilder::new();
    batch.push(&Order { namespace: Namespace::default(), request: None, command });
    Bytes::from(batch.finish(state.time_ms()))
}

fn next_epoch(states: &[Shard], asked: Option<u16>) -> Result<u16, RefoundError> {
    let current = states.iter().map(Shard::epoch).max().unwrap_or(0);
    match asked {
        Some(asked) if asked <= current => Err(RefoundError::EpochTooLow { asked, current }),
        Some(asked) => Ok(asked),
        None => current.checked_add(1).ok_or(RefoundError::EpochsUsedUp(current)),
    }
}

/// Writes the states as snapshots, and the entry that follows each unless it goes elsewhere.
fn write_states(
    disk: &RealDisk,
    identity: &Identity,
    plan: &Plan,
    states: &[Shard],
    entries: &[Bytes],
) -> Result<(), BootError> {
    let snapshots = Snapshots::open(disk.clone(), identity)?;
    let (mut log, _) = Log::open(disk.clone(), identity, LogOptions::default())?;
    let mut conf = Vec::new();
    Conf::of_voters(plan.members.iter().map(|member| member.node)).encode(&mut conf);
    for (shard, state) in states.iter().enumerate() {
        let frozen = state.freeze();
        let at = state.applied();
        let mut writer = snapshots.begin(shard as u16, at.index, at.term)?;
        for chunk in frozen.chunks() {
            writer.chunk(&chunk)?;
        }
        writer.finish(&conf, frozen.hash())?;
        let entry = entries.get(shard).cloned();
        let (shard, term, index) = (shard as u16, at.term, at.index + 1);
        let mut records = vec![
            Record::Start { shard, index: at.index, term },
            Record::Hard { shard, term, vote: 0, commit: at.index },
        ];
        if let Some(data) = entry {
            let (kind, context) = (EntryKind::Normal.number(), Bytes::new());
            records.push(Record::Entry { shard, term, index, kind, data, context });
            records.push(Record::Hard { shard, term, vote: 0, commit: index });
        }
        log.append(&records)?;
    }
    log.sync()?;
    Ok(())
}
