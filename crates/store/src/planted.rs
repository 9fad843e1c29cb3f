//! Deliberate defects, one switch each, so that the simulator can prove it would notice them.
//!
//! Without the feature `planted` every question is a constant `false` and costs nothing.

/// A defect that can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// `Log::sync` reports success without asking the disk.
    SyncSkipped,
    /// Recovery cuts the log at the first bad record in its middle and says nothing.
    MiddleCut,
    /// Recovery takes a torn record at the tail for a good one.
    TornTailKept,
    /// The second copy of term and vote is never written.
    VotesNotWritten,
    /// A snapshot is renamed into place before its bytes are durable.
    SnapshotNotSynced,
    /// A purge drops one entry that the snapshot does not cover.
    PurgeOneTooMany,
}

/// All defects, for the campaign that plants them in turn.
pub const ALL: [Bug; 6] = [
    Bug::SyncSkipped,
    Bug::MiddleCut,
    Bug::TornTailKept,
    Bug::VotesNotWritten,
    Bug::SnapshotNotSynced,
    Bug::PurgeOneTooMany,
];

#[cfg(feature = "planted")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether the defect is switched on in this thread.
#[cfg(feature = "planted")]
#[must_use]
pub fn active(bug: Bug) -> bool {
    ACTIVE.with(|active| active.get() == Some(bug))
}

/// Whether the defect is switched on: never, in this build.
#[cfg(not(feature = "planted"))]
#[must_use]
pub const fn active(_bug: Bug) -> bool {
    false
}

/// Switches one defect on for this thread, or all off.
#[cfg(feature = "planted")]
pub fn set(bug: Option<Bug>) {
    ACTIVE.with(|active| active.set(bug));
}
