//! Reading a founded node's disk: newest whole snapshot and log of every shard, brought together.

use ikada_replica::boot::{Believed, LogContent, SnapshotPoint, believe};
use ikada_replica::consensus::{Conf, Entry, EntryKind, Recovered, Start};
use ikada_replica::founding::Plan;
use ikada_replica::state::{Limits, Shard};
use ikada_store::{
    Disk, Identity, IdentityError, Log, LogOptions, Manifest, OpenError, RealDisk, Record,
    RecoveredShard, SnapshotError, Snapshots,
};

use super::genesis::members;

/// A node's disk, read.
pub struct Boot {
    /// Who this node is.
    pub identity: Identity,
    /// Each shard's log and state, in order.
    pub shards: Vec<(Recovered, Shard)>,
    /// The log, ready for appends.
    pub log: Log<RealDisk>,
    /// The snapshots.
    pub snapshots: Snapshots<RealDisk>,
    /// Things the operator should know (torn tail cut, files set aside).
    pub notes: Vec<String>,
}

/// Why a node's disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The identity does not fit.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The log cannot be trusted.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// The log could not be restarted.
    #[error(transparent)]
    Fault(#[from] ikada_store::Fault),
    /// The snapshots cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A snapshot's content does not restore.
    #[error("shard {shard}: snapshot at index {index} does not restore: {why}")]
    Restore {
        /// Which shard.
        shard: u16,
        /// Its index.
        index: u64,
        /// What the reader said.
        why: String,
    },
    /// A lone node has nobody to fetch a damaged log from.
    #[error(
        "shard {shard}: the log is damaged below index {floor} and this one-node cluster has no peer to fetch it from; \
         the damaged files are in `quarantine/`: restore a backup"
    )]
    NoPeers {
        /// Which shard.
        shard: u16,
        /// What was durable once.
        floor: u64,
    },
}

impl BootError {
    /// Whether only room on the disk is missing.
    pub fn is_disk_full(&self) -> bool {
        match self {
            BootError::Log(error) => error.is_disk_full(),
            BootError::Fault(fault) => matches!(fault, ikada_store::Fault::DiskFull { .. }),
            BootError::Snapshot(error) => error.is_disk_full(),
            _ => false,
        }
    }
}

/// Whether the data folder holds a log at all.
pub fn log_exists(disk: &RealDisk) -> Result<bool, BootError> {
    let io = |source| OpenError::Io { doing: "listing the log's folder", source };
    Ok(!disk.list("wal").map_err(io)?.is_empty())
}

/// Reads everything. `plan` is the founding plan, for the first shards and for those whose every snapshot was lost.
pub fn recover(disk: &RealDisk, identity: Identity, plan: &Plan) -> Result<Boot, BootError> {
    let snapshots = Snapshots::open(disk.clone(), &identity)?;
    let (mut log, mut recovery) = Log::open(disk.clone(), &identity, LogOptions::default())?;
    let mut notes = Vec::new();
    if recovery.torn_bytes > 0 {
        notes.push(format!("{} torn bytes cut from the end of the log", recovery.torn_bytes));
    }
    // Growth has added the others; a folder may hold fewer of them than the cluster has.
    let on_disk = snapshots.shards()?.into_iter().chain(recovery.shards.keys().copied());
    let count = on_disk.map(|shard| shard + 1).fold(plan.shards, u16::max);
    let mut shards = Vec::new();
    let mut restarts = Vec::new();
    for shard in 0..count {
        let noted = recovery.noted.get(&shard).copied().unwrap_or(0);
        let content = content(recovery.shards.remove(&shard).unwrap_or_default(), noted);
        let (point, state) = match snapshots.load(shard)? {
            Some(manifest) => {
                let state = load_state(&snapshots, &manifest)?;
                (Some(point(&manifest)?), state)
            }
            None if shard < plan.shards => {
                (None, Shard::genesis(shard, plan.shards, &members(plan)))
            }
            None => (None, Shard::added(shard, count, Limits::default())),
        };
        let Believed { recovered, restart } = believe(point, content);
        if recovered.floor > recovered.last_index() {
            if plan.members.len() == 1 {
                return Err(BootError::NoPeers { shard, floor: recovered.floor });
            }
            notes.push(format!(
                "shard {shard}: log damaged below index {}; fetching it again from peers before voting",
                recovered.floor
            ));
        }
        restarts.extend(restart.map(|start| Record::Start {
            shard,
            index: start.index,
            term: start.term,
        }));
        shards.push((recovered, state));
    }
    for name in recovery.quarantined.into_iter().chain(snapshots.quarantined()) {
        notes.push(format!("damaged file set aside as {name}"));
    }
    if !restarts.is_empty() {
        log.append(&restarts)?;
        log.sync()?;
    }
    Ok(Boot { identity, shards, log, snapshots, notes })
}

/// Restores the state that a snapshot holds.
pub fn load_state(
    snapshots: &Snapshots<RealDisk>,
    manifest: &Manifest,
) -> Result<Shard, BootError> {
    let broken =
        |why: String| BootError::Restore { shard: manifest.shard, index: manifest.index, why };
    let mut failed = None;
    let chunks = (0..manifest.chunks.len()).map_while(|chunk| {
        snapshots.read_chunk(manifest, chunk).map_err(|error| failed = Some(error)).ok()
    });
    let restored = Shard::restore(chunks);
    if let Some(error) = failed {
        return Err(error.into());
    }
    let state = restored.map_err(|error| broken(error.to_string()))?;
    if state.hash() != manifest.state_hash {
        return Err(broken("its state hash differs from the manifest's".to_owned()));
    }
    Ok(state)
}

/// The position and membership of a snapshot.
pub fn point(manifest: &Manifest) -> Result<SnapshotPoint, BootError> {
    let conf = Conf::decode(&manifest.conf).map_err(|error| BootError::Restore {
        shard: manifest.shard,
        index: manifest.index,
        why: error.to_string(),
    })?;
    Ok(SnapshotPoint { start: Start { index: manifest.index, term: manifest.term }, conf })
}

fn content(shard: RecoveredShard, noted: u64) -> LogContent {
    let entries = shard
        .entries
        .into_iter()
        .map(|entry| Entry {
            term: entry.term,
            index: entry.index,
            kind: EntryKind::from_number(entry.kind).unwrap_or(EntryKind::Normal),
            data: entry.data,
            context: entry.context,
        })
        .collect();
    LogContent {
        term: shard.term,
        vote: shard.vote,
        commit: shard.commit,
        noted,
        start: Start { index: shard.start_index, term: shard.start_term },
        entries,
        floor: shard.floor,
    }
}
