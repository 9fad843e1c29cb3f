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
    /// Whether a report under way includes it.
    pub(super) reporting: bool,
}

impl Held {
    pub(super) fn claim(&self, ticket: Ticket) -> Claim {
        Claim { ticket, id: self.id.clone(), fence: self.fence }
    }
}

/// Longest pause between two renewals. A renewal is also how a worker hears that a task was cancelled, that another
/// attempt has won or that its job is settled, and its slot should be free two seconds after that and the grace time
/// (B4-30). One call tells of all claims held and writes nothing, so that 500 workers make some 400 small calls a second.
const RENEW_EVERY_MS_MAX: u64 = 1_200;

/// Renewal comes after a third of the lifetime, so that one lost renewal is harmless (LS-13), and soon in any case.
pub(super) fn renew_delay_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 3).clamp(1, RENEW_EVERY_MS_MAX)
}
