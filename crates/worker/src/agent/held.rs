//! One task in a slot.

use super::{Claim, Done, Failure, Ticket};

/// Where the task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The handler runs.
    Running,
    /// The handler runs, but the claim is gone: its result will be dropped.
    RunningLost,
    /// The handler has returned and the cluster does not know yet.
    Finished(Result<Done, Failure>),
}

/// A task that this worker holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: String,
    pub(super) fence: u64,
    /// When to renew next.
    pub(super) renew_at_ms: u64,
    pub(super) stage: Stage,
    /// Whether the report under way includes it.
    pub(super) reporting: bool,
}

impl Held {
    pub(super) fn claim(&self, ticket: Ticket) -> Claim {
        Claim { ticket, id: self.id.clone(), fence: self.fence }
    }
}

/// Renewal comes after a third of the lifetime, so that one lost renewal is harmless (LS-13).
pub(super) fn renew_delay_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 3).max(1)
}
