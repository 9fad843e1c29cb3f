//! Deliberate defects, so that the simulator can prove that it would see them. Without the feature `planted` every
//! question is a constant `false`.

/// The defects of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Callers are answered when an entry is proposed, not when it is committed.
    AckBeforeCommit,
    /// Linearizable reads are served from whatever this node has.
    ReadWithoutConfirmation,
    /// A disk that the cluster does not know is believed under a known id.
    WipedNodeAdmitted,
    /// Claims are offered for expiry at half their ttl.
    ExpiryTooEarly,
    /// An open fate is told as a failure.
    UnknownToldAsFailed,
    /// A new leader gives the claims it finds no time at all.
    TtlNotRestarted,
    /// A leader refuses renewals by what it remembers, be it behind the log or no leader any more.
    RefusedFromMemory,
    /// The cluster's level is raised once a majority of the members understands it.
    LevelRaisedByMajority,
    /// Orders are proposed whatever level they are of.
    LevelNotAsked,
}

impl Bug {
    /// All of them.
    pub const ALL: &[Bug] = &[
        Bug::AckBeforeCommit,
        Bug::ReadWithoutConfirmation,
        Bug::WipedNodeAdmitted,
        Bug::ExpiryTooEarly,
        Bug::UnknownToldAsFailed,
        Bug::TtlNotRestarted,
        Bug::RefusedFromMemory,
        Bug::LevelRaisedByMajority,
        Bug::LevelNotAsked,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants one defect in this thread, or none.
    pub fn set(bug: Option<Bug>) {
        ACTIVE.with(|active| active.set(bug));
    }

    /// Whether this defect is planted.
    pub fn active(bug: Bug) -> bool {
        ACTIVE.with(|active| active.get() == Some(bug))
    }
}

#[cfg(feature = "planted")]
pub use switch::{active, set};

/// Whether this defect is planted: never, in this build.
#[cfg(not(feature = "planted"))]
pub const fn active(_bug: Bug) -> bool {
    false
}
