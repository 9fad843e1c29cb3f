//! Leaving: no new tasks, time for those that run, then giving back what is left.

use super::held::Stage;
use super::{Agent, Failure, Output, Ticket};

/// A worker that leaves.
#[derive(Debug)]
pub(super) struct DrainState {
    /// Handlers may run until then.
    until_ms: u64,
    /// Whether what still ran at that time was cancelled and given back.
    given_back: bool,
    /// Whether the session is over: nothing that a claim under way brings is its own.
    removed: bool,
}

impl Agent {
    pub(super) fn take_drain(&mut self, now_ms: u64) {
        let until_ms = now_ms.saturating_add(self.config.drain_ms);
        self.drain.get_or_insert(DrainState { until_ms, given_back: false, removed: false });
    }

    /// The claims were reopened with the removal, so there is nothing to give back; a result that is ready is still told,
    /// and the cluster says whether it counts.
    pub(super) fn take_removed(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        if self.is_removed() {
            return;
        }
        self.drain = Some(DrainState { until_ms: now_ms, given_back: true, removed: true });
        let running = self.held.iter_mut().filter(|(_, held)| held.stage == Stage::Running);
        for (ticket, held) in running {
            held.stage = Stage::RunningLost;
            outputs.push(Output::Lost(*ticket));
        }
    }

    pub(super) fn is_removed(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| drain.removed)
    }

    pub(super) fn drain_wake_ms(&self) -> Option<u64> {
        self.drain.as_ref().map(|drain| match drain.given_back {
            true => drain.until_ms.saturating_add(self.config.leave_ms),
            false => drain.until_ms,
        })
    }

    /// Once the time is over: cancels the handlers that still run. Their attempts have failed through no fault of the
    /// task, so that another worker may begin at once.
    pub(super) fn offer_return(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        let Some(drain) = &mut self.drain else {
            return;
        };
        if drain.given_back || now_ms < drain.until_ms {
            return;
        }
        drain.given_back = true;
        let running = self.held.iter_mut().filter(|(_, held)| held.stage == Stage::Running);
        let mut cancelled: Vec<Ticket> = Vec::new();
        for (ticket, held) in running {
            let error = "the worker left before the task was done".to_owned();
            let failure = Failure { error, retry: true, delay_ms: Some(0) };
            held.stage = Stage::Finished(Err(failure));
            cancelled.push(*ticket);
        }
        self.report.waiting += cancelled.len();
        outputs.extend(cancelled.into_iter().map(Output::Cancel));
    }

    /// Stops when nothing is held, or when the time for giving back is over as well.
    pub(super) fn consider_stop(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        let Some(latest_ms) = self.drain_wake_ms() else {
            return;
        };
        let given_back = self.drain.as_ref().is_some_and(|drain| drain.given_back);
        // A claim under way may still hand tasks out; waiting for it wastes none of them.
        let waits = self.claim.under_way() && !self.is_removed();
        let drained = self.held.is_empty() && !waits;
        if drained || (given_back && now_ms >= latest_ms) {
            self.stopped = true;
            outputs.push(Output::Stopped { abandoned: self.held.len() });
        }
    }
}
