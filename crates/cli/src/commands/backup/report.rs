//! What was written or read: as lines for people, as one document for programs.

use ikada_api::state::Shard;
use serde::Serialize;

use super::position;
use crate::failure::Failure;
use crate::render::{OutputKind, Screen, write};

/// The states of a backup or a folder, and the bytes of its objects.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The file, object or folder that was made; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<String>,
    /// Its cluster, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    /// The restore epoch of a new cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<u16>,
    /// Bytes of the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    pub(super) shards: Vec<ShardReport>,
    /// What is kept of objects; absent where it was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) objects: Option<ObjectsReport>,
}

/// One shard.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShardReport {
    pub(super) shard: usize,
    /// Term and index of the last entry.
    pub(super) position: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state_hash: Option<String>,
    /// The highest index that is known to be committed, where a log was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<u64>,
    /// Whether the log held more once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) damaged: bool,
}

/// Pieces of objects.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ObjectsReport {
    pub(super) pieces: u64,
    pub(super) bytes: u64,
    /// Pieces that should be there and are not.
    pub(super) missing: u64,
}

impl ShardReport {
    pub(super) fn of(states: &[Shard]) -> Vec<ShardReport> {
        let report = |(shard, state): (usize, &Shard)| ShardReport {
            shard,
            position: position(state.applied()),
            state_hash: Some(format!("{:016x}", state.hash())),
            ..ShardReport::default()
        };
        states.iter().enumerate().map(report).collect()
    }

    fn line(&self) -> String {
        let ShardReport { shard, position, .. } = self;
        match (&self.state_hash, self.commit) {
            (Some(hash), _) => format!("shard {shard} at {position}: state hash {hash}"),
            (None, commit) => {
                let damage = if self.damaged { ", DAMAGED: it held more once" } else { "" };
                let commit = commit.unwrap_or_default();
                format!(
                    "shard {shard}: last entry {position}, known as committed up to index {commit}{damage}"
                )
            }
        }
    }
}

impl Report {
    /// Prints it in the way that was asked for.
    pub(super) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        match screen.kind() {
            OutputKind::Table => write(&self.lines()),
            OutputKind::Json => {
                let text = serde_json::to_string_pretty(self);
                let text = text.map_err(|error| Failure::failed(error.to_string()))?;
                write(&format!("{text}\n"))
            }
            OutputKind::Quiet => {
                write(&self.made.iter().map(|made| format!("{made}\n")).collect::<String>())
            }
        }
    }

    fn lines(&self) -> String {
        let mut text: String = self.shards.iter().map(|shard| shard.line() + "\n").collect();
        // Of a disk that is all that is left, what is missing is told instead.
        let is_backup = self.shards.iter().any(|shard| shard.state_hash.is_some());
        if let Some(ObjectsReport { pieces, bytes, .. }) = self.objects.filter(|_| is_backup) {
            text.push_str(&format!("objects: {bytes} bytes in {pieces} pieces\n"));
        }
        text
    }
}
