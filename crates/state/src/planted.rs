//! Planted defects: small, named faults the simulator must be able to find (S-4).
//!
//! With the feature `planted` off, [`active`] is a constant `false` and costs nothing. With it on,
//! the defect chosen by `set` is active on this thread alone, so that runs do not disturb each
//! other.

/// Whether the defects are compiled in, so that a binary can say so.
pub const COMPILED: bool = cfg!(feature = "planted");

/// One deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// `Expire` ends a claim whatever fence it names.
    ExpireUnfenced,
    /// `Complete` with an older fence is accepted while the task is claimed.
    CompleteStaleFence,
    /// Snapshots leave out the submit dedup window.
    DedupNotInSnapshot,
    /// A completion that comes after an accepted cancel overwrites it.
    CancelLosesToCompletion,
    /// Claims do not raise the attempt count.
    AttemptsNotCounted,
    /// Snapshots leave out the grant counter, so fences go back after a restore.
    GrantCounterNotInSnapshot,
    /// Retry delays depend on how many entries this instance applied since it was built.
    InstanceCounter,
    /// Retention removes a live task instead of the finished one.
    RetentionRemovesLive,
    /// A message delivered twice is applied twice.
    OutboxAppliedTwice,
    /// An enqueue into a paused queue is acknowledged but dropped.
    PausedEnqueueDropped,
    /// Snapshots leave out the tombstones of requests.
    VoidNotInSnapshot,
    /// A purge of waiting tasks takes claimed ones too.
    PurgeTakesClaimed,
    /// A retried task keeps the count of its attempts.
    RetryKeepsAttempts,
    /// While a task waits for its retry, the next one of its key may go.
    KeyOrderLostOnRetry,
    /// Claims take tasks whatever labels those want.
    LabelsIgnored,
    /// A resent completion brings its follow-ups again.
    ThenDoubledOnResend,
    /// An instant of a schedule that was decided before is decided again, under another name.
    FireNotDeduplicated,
    /// A lease that is given back goes to whoever came last.
    LeaseLastWaiterFirst,
    /// The next holder of a lease gets the fence of the one before.
    LeaseFenceReused,
    /// The end of a holding counts whatever fence it names.
    LeaseExpireUnfenced,
    /// A namespace's quota does not count.
    QuotaNotJudged,
    /// The files of a completion that is refused become visible all the same.
    StaleOutputsPublished,
    /// A result is taken after its stage was settled.
    ClosedStageTakes,
    /// A stage begins before those that it reads are settled.
    StageBeginsEarly,
    /// A checkpoint is kept whatever fence it names.
    CheckpointUnfenced,
    /// The claims of a removed worker live on in other shards.
    GoneWorkerKeepsClaims,
    /// A job's swept tasks are not counted.
    SweptNotCounted,
    /// Removal by count takes a dead task before one that ended otherwise.
    DeadPushedOut,
    /// The names of tasks that were removed are forgotten with them.
    GoneForgotten,
}

impl Bug {
    /// All planted defects of this crate.
    pub const ALL: [Bug; 29] = [
        Bug::ExpireUnfenced,
        Bug::CompleteStaleFence,
        Bug::DedupNotInSnapshot,
        Bug::CancelLosesToCompletion,
        Bug::AttemptsNotCounted,
        Bug::GrantCounterNotInSnapshot,
        Bug::InstanceCounter,
        Bug::RetentionRemovesLive,
        Bug::OutboxAppliedTwice,
        Bug::PausedEnqueueDropped,
        Bug::VoidNotInSnapshot,
        Bug::PurgeTakesClaimed,
        Bug::RetryKeepsAttempts,
        Bug::KeyOrderLostOnRetry,
        Bug::LabelsIgnored,
        Bug::ThenDoubledOnResend,
        Bug::FireNotDeduplicated,
        Bug::LeaseLastWaiterFirst,
        Bug::LeaseFenceReused,
        Bug::LeaseExpireUnfenced,
        Bug::QuotaNotJudged,
        Bug::StaleOutputsPublished,
        Bug::ClosedStageTakes,
        Bug::StageBeginsEarly,
        Bug::CheckpointUnfenced,
        Bug::GoneWorkerKeepsClaims,
        Bug::SweptNotCounted,
        Bug::DeadPushedOut,
        Bug::GoneForgotten,
    ];
}

#[cfg(not(feature = "planted"))]
mod switch {
    use super::Bug;

    /// Whether the defect is active: never, in this build.
    pub const fn active(_bug: Bug) -> bool {
        false
    }
}

#[cfg(feature = "planted")]
mod switch {
    use super::Bug;
    use std::cell::Cell;

    std::thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Whether the defect is active on this thread.
    pub fn active(bug: Bug) -> bool {
        CHOSEN.with(|chosen| chosen.get() == Some(bug))
    }

    /// Chooses the defect of this thread, or none.
    pub fn set(bug: Option<Bug>) {
        CHOSEN.with(|chosen| chosen.set(bug));
    }
}

pub use switch::*;
