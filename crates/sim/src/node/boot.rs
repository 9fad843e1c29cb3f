//! How a node starts: identity, log, snapshots, state, replica; the same steps as in production.
//!
//! First start: the genesis snapshot of every shard, then the identity, whose existence says that the rest is there.
//! Every start: the log is read back, each shard begins at its newest intact snapshot, entries that follow it are kept,
//! and whatever was lost is left to the leader to repair (`floor`).
//!
//! Invariant: a shard never begins with entries that do not follow its snapshot.

use ikada_consensus::{BOOTSTRAP, Conf, Entry, EntryKind, Recovered, Start};
use ikada_replica::Replica;
use ikada_replica::ReplicaConfig;
use ikada_replica::boot::{Believed, LogContent, SnapshotPoint, believe};
use ikada_replica::output::Now;
use ikada_state::{Limits, Member, Shard, ShardId};
use ikada_store::{
    Identity, Log, LogOptions, Manifest, Record, RecoveredShard, SimDisk, Snapshots,
};

/// What is known before the disk is read.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Settings of the replica; `incarnation` is used only for a first start.
    pub config: ReplicaConfig,
    /// Settings of the log.
    pub log: LogOptions,
    /// Number of shards.
    pub shards: u16,
    /// Founding members; their nodes are the first voters.
    pub members: Vec<Member>,
    /// Bounds of the state.
    pub limits: Limits,
    /// Whether this node joins a running cluster instead of founding one.
    pub joins: bool,
}

/// A started node.
pub struct Booted {
    /// The replica.
    pub replica: Replica,
    /// Its log.
    pub log: Log<SimDisk>,
    /// Its snapshots.
    pub snapshots: Snapshots<SimDisk>,
    /// What was found, per shard.
    pub found: Vec<Recovered>,
    /// What the log had to say.
    pub findings: Findings,
}

/// Notable things about a start.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Bytes cut from the tail.
    pub torn_bytes: u64,
    /// Files moved to quarantine.
    pub quarantined: usize,
    /// Whether a shard lost entries that it had made durable.
    pub damaged: bool,
    /// Whether a shard began at a later snapshot than the first.
    pub from_snapshot: bool,
}

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// Its identity is damaged or another's.
    #[error(transparent)]
    Identity(#[from] ikada_store::IdentityError),
    /// Its log cannot be opened.
    #[error(transparent)]
    Open(#[from] ikada_store::OpenError),
    /// Its log cannot be written.
    #[error(transparent)]
    Log(#[from] ikada_store::log::Fault),
    /// Its snapshots cannot be read or written.
    #[error(transparent)]
    Snapshot(#[from] ikada_store::SnapshotError),
    /// A snapshot's membership is unreadable.
    #[error("shard {0}: the membership in the snapshot cannot be read")]
    Conf(ShardId),
    /// A snapshot whose hashes are right does not restore.
    #[error("shard {0}: {1}")]
    Restore(ShardId, ikada_state::RestoreError),
    /// Consensus refused what was found.
    #[error(transparent)]
    Consensus(#[from] ikada_consensus::OpenError),
}

/// The first state of one shard. Nodes that join later do not know the founders and wait for a snapshot.
pub fn genesis(setup: &Setup, shard: ShardId) -> Shard {
    let members: &[Member] = if setup.joins { &[] } else { &setup.members };
    Shard::genesis_with(shard, setup.shards, members, setup.limits.clone())
}

/// The membership that a cluster begins with.
pub fn first_conf(setup: &Setup) -> Conf {
    Conf::of_voters(setup.members.iter().map(|member| member.node))
}

/// Starts a node from its disk.
pub fn boot(disk: &SimDisk, setup: &Setup, now: Now) -> Result<Booted, BootError> {
    let identity = identify(disk, setup)?;
    let (mut log, mut recovery) = Log::open(disk.clone(), &identity, setup.log.clone())?;
    let snapshots = Snapshots::open(disk.clone(), &identity)?;
    let mut findings = Findings {
        torn_bytes: recovery.torn_bytes,
        quarantined: recovery.quarantined.len(),
        ..Findings::default()
    };
    let mut found = Vec::new();
    let mut shards = Vec::new();
    let mut restarts = Vec::new();
    let on_disk = snapshots.shards()?.into_iter().chain(recovery.shards.keys().copied());
    let count = on_disk.map(|shard| shard + 1).fold(setup.shards, u16::max);
    for shard in 0..count {
        let noted = recovery.noted.get(&shard).copied().unwrap_or(0);
        let content = content(recovery.shards.remove(&shard).unwrap_or_default(), noted);
        let (point, state) = match snapshots.load(shard)? {
            Some(manifest) => {
                let (point, state) = restore(&snapshots, &manifest)?;
                (Some(point), state)
            }
            // Waits for its first snapshot, or for another one.
            None if shard < setup.shards => (None, genesis(setup, shard)),
            None => (None, Shard::added(shard, count, setup.limits.clone())),
        };
        let Believed { recovered, restart } = believe(point, content);
        findings.damaged |= recovered.floor > recovered.last_index();
        findings.from_snapshot |= recovered.start.index > BOOTSTRAP.index;
        restarts.extend(restart.map(|start| Record::Start {
            shard,
            index: start.index,
            term: start.term,
        }));
        found.push(recovered.clone());
        shards.push((recovered, state));
    }
    if !restarts.is_empty() {
        log.append(&restarts)?;
        log.sync()?;
    }
    findings.quarantined += snapshots.quarantined().len();
    let mut config = setup.config.clone();
    config.incarnation = identity.incarnation;
    let replica = Replica::new(config, shards, now)?;
    Ok(Booted { replica, log, snapshots, found, findings })
}

/// The identity on disk; a first start writes the genesis and then it.
fn identify(disk: &SimDisk, setup: &Setup) -> Result<Identity, BootError> {
    let expected = Identity {
        cluster: setup.config.cluster,
        node: setup.config.node,
        incarnation: setup.config.incarnation,
        name: format!("node-{}", setup.config.node),
    };
    if let Some(identity) = Identity::load(disk)? {
        let fixed = Identity { incarnation: identity.incarnation, ..expected };
        identity.require(&fixed)?;
        return Ok(identity);
    }
    if !setup.joins {
        let snapshots = Snapshots::open(disk.clone(), &expected)?;
        let mut conf = Vec::new();
        first_conf(setup).encode(&mut conf);
        for shard in 0..setup.shards {
            let state = genesis(setup, shard).freeze();
            let mut writer = snapshots.begin(shard, BOOTSTRAP.index, BOOTSTRAP.term)?;
            for chunk in state.chunks() {
                writer.chunk(&chunk)?;
            }
            writer.finish(&conf, state.hash())?;
        }
    }
    expected.store(disk)?;
    Ok(expected)
}

/// A snapshot's state, position and membership.
fn restore(
    snapshots: &Snapshots<SimDisk>,
    manifest: &Manifest,
) -> Result<(SnapshotPoint, Shard), BootError> {
    let shard = manifest.shard;
    let mut chunks = Vec::with_capacity(manifest.chunks.len());
    for chunk in 0..manifest.chunks.len() {
        chunks.push(snapshots.read_chunk(manifest, chunk)?);
    }
    let state =
        Shard::restore(chunks.into_iter()).map_err(|error| BootError::Restore(shard, error))?;
    let conf = Conf::decode(&manifest.conf).map_err(|_| BootError::Conf(shard))?;
    let start = Start { index: manifest.index, term: manifest.term };
    Ok((SnapshotPoint { start, conf }, state))
}

fn content(shard: RecoveredShard, noted: u64) -> LogContent {
    let entry = |entry: ikada_store::RecoveredEntry| Entry {
        term: entry.term,
        index: entry.index,
        kind: EntryKind::from_number(entry.kind).unwrap_or(EntryKind::Normal),
        data: entry.data,
        context: entry.context,
    };
    LogContent {
        term: shard.term,
        vote: shard.vote,
        commit: shard.commit,
        noted,
        start: Start { index: shard.start_index, term: shard.start_term },
        entries: shard.entries.into_iter().map(entry).collect(),
        floor: shard.floor,
    }
}
