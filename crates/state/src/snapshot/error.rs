//! Why a snapshot is refused; each case names the record or the figure that is wrong.

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The stream ends before its trailer.
    #[error("snapshot ends early")]
    Truncated,
    /// Bytes follow the trailer.
    #[error("snapshot has bytes after its trailer")]
    Trailing,
    /// The format is of another version.
    #[error("snapshot has version {0}, this program knows {known}; start the version that wrote it", known = crate::snapshot::VERSION)]
    Version(u32),
    /// The cluster's level is above what this program understands.
    #[error("snapshot is of level {0}, this program understands {known}; start the version of the other nodes", known = crate::LEVEL)]
    Level(u32),
    /// A record is of an unknown kind, or not in its place.
    #[error("snapshot record {record} has kind {kind}, which does not belong there")]
    Kind {
        /// Number of the record.
        record: u64,
        /// Its kind.
        kind: u8,
    },
    /// A record does not decode or is too large.
    #[error("snapshot record {record} does not decode")]
    Malformed {
        /// Number of the record.
        record: u64,
    },
    /// A record breaks a rule of the state.
    #[error("snapshot record {record} breaks a rule: {rule}")]
    Invalid {
        /// Number of the record.
        record: u64,
        /// The rule.
        rule: &'static str,
    },
    /// The number of records is not that of the trailer.
    #[error("snapshot holds {found} records, its trailer says {stored}")]
    Count {
        /// Records read.
        found: u64,
        /// Records announced.
        stored: u64,
    },
    /// The restored state is not the one that was frozen.
    #[error("snapshot hash is {found:016x}, its trailer says {stored:016x}")]
    Hash {
        /// Hash of what was read.
        found: u64,
        /// Hash announced.
        stored: u64,
    },
}
