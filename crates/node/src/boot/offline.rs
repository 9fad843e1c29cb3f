//! Reading a stopped node's disk for its own sake: the states it holds, with every entry of its log applied.
//!
//! For the loss of a majority (F-30): what the log holds beyond its known commit may have been acknowledged, so it is
//! applied as well; what only the lost disks held is gone. The folder is locked meanwhile, and nothing in it is deleted.

use std::fs::File;
use std::path::Path;

use ikada_replica::consensus::EntryKind;
use ikada_replica::state::{Lsn, Shard};
use ikada_store::{Identity, RealDisk};

use super::papers::{Papers, PapersError};
use super::recover::{BootError, recover};

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// It cannot be opened.
    #[error("{path}: {source}")]
    Folder {
        /// The folder.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A server uses it.
    #[error("{path} is in use: stop the server that runs there")]
    Locked {
        /// The folder.
        path: String,
    },
    /// It holds no cluster's data.
    #[error("{path} holds no data of a cluster")]
    Nothing {
        /// The folder.
        path: String,
    },
    /// Its log is elsewhere.
    #[error(
        "{path}: the logs of this cluster are in a database, and its folders hold only older snapshots: bring the database \
         back from a backup of it, or name it with --from-log to make a new cluster of what it holds"
    )]
    InDatabase {
        /// The folder.
        path: String,
    },
    /// Its papers cannot be used.
    #[error(transparent)]
    Papers(#[from] PapersError),
    /// Its disk cannot be trusted.
    #[error(transparent)]
    Boot(#[from] BootError),
}

/// One shard as a disk holds it.
#[derive(Debug)]
pub struct OfflineShard {
    /// The state with the whole log applied.
    pub state: Shard,
    /// Position of the last entry in the log.
    pub last: Lsn,
    /// The commit index that the disk knew of.
    pub commit: u64,
    /// Whether the disk once held more than it does now.
    pub is_damaged: bool,
}

/// A node's disk.
#[derive(Debug)]
pub struct Offline {
    /// The cluster it belonged to.
    pub cluster: u64,
    /// The node.
    pub node: u64,
    /// Its shards, in order.
    pub shards: Vec<OfflineShard>,
}

/// Reads a stopped node's folder.
pub fn read_offline(folder: &Path) -> Result<Offline, OfflineError> {
    let path = folder.display().to_string();
    if !folder.join("founding").exists() {
        return Err(OfflineError::Nothing { path });
    }
    let broken = |source| OfflineError::Folder { path: path.clone(), source };
    let lock = File::create(folder.join("lock")).map_err(broken)?;
    if lock.try_lock().is_err() {
        return Err(OfflineError::Locked { path });
    }
    let disk = RealDisk::open(folder).map_err(broken)?;
    let papers = Papers::load_or_make(&disk, None, &mut fastrand::Rng::new())?;
    if papers.in_database {
        return Err(OfflineError::InDatabase { path });
    }
    let identity = Identity::load(&disk).map_err(BootError::from)?;
    let (Some(identity), Some(plan)) = (identity, papers.plan_today()) else {
        return Err(OfflineError::Nothing { path });
    };
    let (cluster, node) = (identity.cluster, identity.node);
    let boot = recover(&disk, identity, &plan)?;
    let shards = boot.shards.into_iter().map(|(recovered, mut state)| {
        let is_damaged = recovered.floor > recovered.last_index();
        let mut last = state.applied();
        for entry in &recovered.entries {
            last = Lsn { term: entry.term, index: entry.index };
            let data: &[u8] = if entry.kind == EntryKind::Normal { &entry.data } else { &[] };
            state.apply(last, data);
        }
        OfflineShard { state, last, commit: recovered.commit, is_damaged }
    });
    Ok(Offline { cluster, node, shards: shards.collect() })
}
