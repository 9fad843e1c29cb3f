//! Why the log cannot go on, or cannot be opened.

use std::io;

/// The log can no longer be trusted by this process: exit, never retry.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No space left; nothing of the refused call was kept. The only fault after which the handle still
    /// works, provided it says so by [`Fault::is_retryable`].
    #[error("write-ahead log: disk full while {doing}: {source}")]
    DiskFull {
        /// What was being done.
        doing: &'static str,
        /// Whether the log is unharmed and the call may be repeated after space was freed.
        retryable: bool,
        /// The disk's answer.
        source: io::Error,
    },
    /// A write failed.
    #[error("write-ahead log: {doing} failed: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The disk's answer.
        source: io::Error,
    },
    /// A record that was written earlier reads back wrong.
    #[error("write-ahead log: shard {shard} entry {index} in segment {segment} reads back damaged")]
    Damaged {
        /// Shard.
        shard: u16,
        /// Entry.
        index: u64,
        /// Segment.
        segment: u64,
    },
    /// An earlier call failed; the handle is dead.
    #[error("write-ahead log is closed after an earlier fault")]
    Closed,
}

impl Fault {
    /// Whether the log is unharmed, so that the same call may be tried again once there is space.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Fault::DiskFull { retryable: true, .. })
    }
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk failed.
    #[error("write-ahead log: {doing} failed: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The disk's answer.
        source: io::Error,
    },
    /// A file of another cluster, node or incarnation.
    #[error("{file} belongs to {what} {found}, but this node is {what} {expected}")]
    Foreign {
        /// The file.
        file: String,
        /// `cluster`, `node` or `incarnation`.
        what: &'static str,
        /// Value in the file.
        found: u64,
        /// Our value.
        expected: u64,
    },
    /// A segment under another segment's name.
    #[error("{file} holds segment {found}: files were renamed or mixed")]
    Misplaced {
        /// The file.
        file: String,
        /// The number inside.
        found: u64,
    },
    /// A number that no log ever reaches: its checksum is right, but nothing of ours wrote it.
    #[error("write-ahead log: {what} {found} is beyond what a log can reach; restore a backup")]
    Number {
        /// `batch` or `generation of votes`.
        what: &'static str,
        /// The number.
        found: u64,
    },
    /// A file written by a newer program.
    #[error("{file} has format {found}, this program knows {known}")]
    Format {
        /// The file.
        file: String,
        /// Version in the file.
        found: u32,
        /// Version known.
        known: u32,
    },
    /// The log ends earlier than it is known to have reached.
    #[error(
        "write-ahead log ends at batch {found}, but batch {proven} is known to be durable: \
         an older copy of the files was put in place; rejoin under a new node id"
    )]
    RolledBack {
        /// Last batch present.
        found: u64,
        /// Batch proven durable.
        proven: u64,
    },
    /// Neither copy of a shard's term and vote can be trusted.
    #[error(
        "shard {shard}: the write-ahead log and the votes file are both damaged, so a vote may be \
         forgotten; rejoin under a new node id"
    )]
    VoteLost {
        /// Shard.
        shard: u16,
    },
    /// Writing while opening failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl OpenError {
    /// Whether only space is missing: the log is unharmed and can be opened once there is some.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            OpenError::Io { source, .. } => crate::disk::is_full(source),
            OpenError::Fault(fault) => matches!(fault, Fault::DiskFull { .. }),
            _ => false,
        }
    }
}
