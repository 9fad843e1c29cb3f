//! A cluster made in a database, of states that a backup or an older database holds.
//!
//! Promise: whoever fails leaves no cluster there, only snapshots that the next try removes; tables that hold a cluster are not touched.

use std::path::Path;
use std::sync::Arc;

use ikada_replica::state::Shard;
use ikada_store::postgres::{Connection, PostgresError, ShardSeed, Target};
use ikada_store::{Identity, IdentityError, RealDisk, Snapshots};

use super::snapshot;
use crate::boot::Refounded;

/// Why no cluster was made in the database.
#[derive(Debug, thiserror::Error)]
pub enum SeedingError {
    /// The database itself.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// There is one.
    #[error(
        "{target} holds a cluster already: name another database, or a schema of its own with ?options=-csearch_path%3DNAME after CREATE SCHEMA NAME"
    )]
    Taken {
        /// The database.
        target: String,
    },
    /// The folder that was just made cannot be read.
    #[error("the new folder: {0}")]
    Folder(String),
}

/// A database that is about to get a cluster.
pub struct Seeding {
    connection: Connection,
    target: String,
}

impl Seeding {
    /// Looks whether there is room, before anything is made.
    pub async fn begin(target: &Target) -> Result<Seeding, SeedingError> {
        let connection = target.connect().await?;
        connection.prepare_schema().await?;
        let seeding = Seeding { connection, target: target.to_string() };
        match seeding.connection.clear_for_seeds().await? {
            true => Ok(seeding),
            false => Err(seeding.taken()),
        }
    }

    /// Brings the states that the folder holds into the database, then makes the cluster.
    pub async fn finish(
        self,
        folder: &Path,
        made: &Refounded,
        states: &[Shard],
    ) -> Result<(), SeedingError> {
        let broken = |error: std::io::Error| SeedingError::Folder(error.to_string());
        let disk = RealDisk::open(folder).map_err(broken)?;
        let wrong = |error: IdentityError| SeedingError::Folder(error.to_string());
        let identity = Identity::load(&disk).map_err(wrong)?;
        let identity = identity.ok_or_else(|| SeedingError::Folder("no identity".to_owned()))?;
        let snapshots = Snapshots::open(disk, &identity);
        let snapshots = snapshots.map_err(|error| SeedingError::Folder(error.to_string()))?;
        let snapshots = Arc::new(snapshots);
        let mut seeds = Vec::new();
        for (shard, state) in states.iter().enumerate() {
            let at = state.applied();
            snapshot::store(&self.connection, &snapshots, shard as u16, at.index).await?;
            let first = made.first.get(shard).cloned().unwrap_or_default();
            seeds.push(ShardSeed { index: at.index, epoch: at.term.max(1), first });
        }
        // Writing into a vector cannot fail.
        let plan = minicbor::to_vec(&made.plan).unwrap_or_default();
        match self.connection.seed_cluster(&plan, &seeds).await? {
            true => Ok(()),
            false => Err(self.taken()),
        }
    }

    fn taken(&self) -> SeedingError {
        SeedingError::Taken { target: self.target.clone() }
    }
}
