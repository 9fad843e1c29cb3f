//! Planted defects: known ways to get consensus wrong, each one line at its hook.
//!
//! Promises: without the cargo feature `planted`, [`active`] is a constant `false` and every hook vanishes.
//! With it, one defect per thread can be switched on with `set`, so that the simulator can show that its
//! checkers notice. Leaves out: anything that could reach a release build.

/// A defect that can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The vote is left out of the durable hard state: after a restart a node may vote twice in one term.
    VoteNotPersisted,
    /// The durable hard state keeps the term of the process start: a restarted node forgets newer terms.
    TermNotPersisted,
    /// A leader commits an entry of an older term by counting copies.
    OldTermCommit,
    /// Votes and append answers leave before the state they promise is durable.
    AnswersBeforeFsync,
    /// A node with a damaged log answers vote requests.
    DamagedVotes,
    /// A node with a damaged log campaigns.
    RepairingCampaigns,
    /// A leader answers a linearizable read without asking a majority.
    LeaseRead,
    /// A conflicting append is written without dropping the longer stale suffix.
    StaleSuffixKept,
    /// A membership change takes effect when it is proposed, not when it is committed.
    ChangeAtPropose,
    /// Committed entries are handed out before they are durable locally.
    ApplyBeforePersist,
    /// A lease in a database counts from its answer, not from its question.
    LeaseFromAnswer,
    /// A new holder leads before it has read the log.
    LeaseWithoutReading,
    /// A reading that began before the lease was taken counts as the new holder's.
    LeaseEarlyReading,
    /// A holder answers linearizable reads without a look at the lease.
    LeaseReadUnconfirmed,
    /// A database that went back in its log is no fault.
    LeaseSetBack,
    /// A log that is long enough is taken for the one that was known, whatever its entries are.
    LeaseAnyEntry,
}

/// Every defect, for a simulator that goes through all of them.
pub const ALL: [Bug; 10] = [
    Bug::VoteNotPersisted,
    Bug::TermNotPersisted,
    Bug::OldTermCommit,
    Bug::AnswersBeforeFsync,
    Bug::DamagedVotes,
    Bug::RepairingCampaigns,
    Bug::LeaseRead,
    Bug::StaleSuffixKept,
    Bug::ChangeAtPropose,
    Bug::ApplyBeforePersist,
];

/// Defects of leases in a database, which show only where there are some.
pub const LEASED: [Bug; 6] = [
    Bug::LeaseFromAnswer,
    Bug::LeaseWithoutReading,
    Bug::LeaseEarlyReading,
    Bug::LeaseReadUnconfirmed,
    Bug::LeaseSetBack,
    Bug::LeaseAnyEntry,
];

#[cfg(feature = "planted")]
std::thread_local! {
    static ACTIVE: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether `bug` is switched on for this thread.
#[cfg(feature = "planted")]
pub fn active(bug: Bug) -> bool {
    ACTIVE.with(|active| active.get() == Some(bug))
}

/// Whether `bug` is switched on: never, as this build has no planted defects.
#[cfg(not(feature = "planted"))]
pub const fn active(_bug: Bug) -> bool {
    false
}

/// Switches one defect on for this thread, or all off.
#[cfg(feature = "planted")]
pub fn set(bug: Option<Bug>) {
    ACTIVE.with(|active| active.set(bug));
}
