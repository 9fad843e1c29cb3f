//! `Fail`: ends an attempt as failed. With attempts left the task waits out its backoff and is
//! ready again; else it is dead, with the reason (TQ-7, TQ-9, Q7).

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, DeadReason, Task, TaskState};
use crate::limits::JITTER_PERMILLE_MAX;
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{
    Backoff, FailNext, Fence, Namespace, RefusalCode, Reply, SharedBytes, TaskId, WorkerId,
};

/// Reports failure.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Fail {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
    /// Who ran it.
    #[n(2)]
    pub worker: WorkerId,
    /// What went wrong; cut to a bounded length.
    #[n(3)]
    pub error: SharedBytes,
    /// False if another attempt is of no use.
    #[n(4)]
    pub retry: bool,
    /// Delay before the next attempt; the backoff if absent.
    #[n(5)]
    pub delay_ms: Option<u64>,
    /// Jitter on the backoff, drawn by the leader: -500 to 500 thousandths.
    #[n(6)]
    pub jitter_permille: i16,
}

/// Delay after the given number of attempts: doubled each time, capped, then spread by the jitter.
pub(crate) fn backoff_ms(backoff: Backoff, attempt: u16, jitter_permille: i16) -> u64 {
    const DOUBLINGS_MAX: u32 = 32;
    let doublings = u32::from(attempt.saturating_sub(1)).min(DOUBLINGS_MAX);
    let delay_ms = (u64::from(backoff.base_ms) << doublings).min(u64::from(backoff.cap_ms));
    let widest = JITTER_PERMILLE_MAX as i16;
    let jitter = jitter_permille.clamp(-widest, widest);
    delay_ms * (1000 + i64::from(jitter)) as u64 / 1000
}

impl Shard {
    pub(crate) fn apply_fail(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Fail,
    ) -> Reply {
        match self.fail(batch, namespace, order) {
            Ok(next) => Reply::Failed { next },
            Err(code) => Reply::refused(code),
        }
    }

    fn fail(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Fail,
    ) -> Result<FailNext, RefusalCode> {
        let slot = self.find_task(namespace, &order.id).ok_or(RefusalCode::TaskNotFound)?;
        match self.past_outcome(slot, order.fence, &order.worker)? {
            Some(AttemptOutcome::FailedDead) => return Ok(FailNext::Dead),
            Some(AttemptOutcome::Failed { ready_ms: 0 }) => return Ok(FailNext::Ready),
            Some(AttemptOutcome::Failed { ready_ms }) => {
                return Ok(FailNext::Scheduled { at_ms: ready_ms });
            }
            _ => {}
        }
        self.check_claim(slot, order.fence, Some(&order.worker))?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        let (next, reason) = self.next_after_fail(task, &order);
        let cut = order.error.len().min(self.core.limits.error_bytes_max as usize);
        let error = match cut == order.error.len() {
            true => order.error,
            false => SharedBytes::from(&order.error[..cut]),
        };
        let outcome = match next {
            FailNext::Ready => AttemptOutcome::Failed { ready_ms: 0 },
            FailNext::Scheduled { at_ms } => AttemptOutcome::Failed { ready_ms: at_ms },
            FailNext::Dead => AttemptOutcome::FailedDead,
        };
        self.end_attempt(batch, slot, outcome, Some(error), next, reason);
        Ok(next)
    }

    fn next_after_fail(&self, task: &Task, order: &Fail) -> (FailNext, DeadReason) {
        if !order.retry {
            return (FailNext::Dead, DeadReason::NotRetryable);
        }
        let backoff_ms = backoff_ms(task.backoff, task.attempt, order.jitter_permille);
        let mut delay_ms = order.delay_ms.unwrap_or(backoff_ms);
        if planted::active(Bug::InstanceCounter) {
            delay_ms += self.instance_applies % 7;
        }
        self.next_attempt(task, delay_ms, DeadReason::AttemptsExhausted)
    }

    /// What follows an attempt that did not succeed: another one after a delay, unless the attempts
    /// are used up or the deadline comes first.
    pub(crate) fn next_attempt(
        &self,
        task: &Task,
        delay_ms: u64,
        spent: DeadReason,
    ) -> (FailNext, DeadReason) {
        if task.attempt >= task.max_attempts {
            return (FailNext::Dead, spent);
        }
        let delay_ms = delay_ms.min(self.core.limits.delay_ms_max);
        let at_ms = self.core.time_ms.saturating_add(delay_ms);
        if task.deadline_ms() > 0 && task.deadline_ms() <= at_ms {
            return (FailNext::Dead, DeadReason::DeadlinePassed);
        }
        match delay_ms {
            0 => (FailNext::Ready, spent),
            _ => (FailNext::Scheduled { at_ms }, spent),
        }
    }

    /// Ends the live attempt of a task and moves the task on.
    pub(crate) fn end_attempt(
        &mut self,
        batch: &mut Batch,
        slot: u32,
        outcome: AttemptOutcome,
        error: Option<SharedBytes>,
        next: FailNext,
        reason: DeadReason,
    ) {
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            task.sequence = sequence;
            task.moment_ms = now_ms;
            match next {
                FailNext::Ready => task.state = TaskState::Ready,
                FailNext::Scheduled { at_ms } => {
                    task.state = TaskState::Scheduled;
                    task.moment_ms = at_ms;
                }
                FailNext::Dead => {
                    task.state = TaskState::Dead;
                    task.dead_reason = Some(reason);
                }
            }
            if let Some(history) = &mut task.history {
                let history = Arc::make_mut(history);
                history.newest.outcome = outcome;
                history.newest.ended_ms = now_ms;
                history.newest.error = error;
            }
        });
        if let Some(queue) = self.core.tasks.get(slot).map(|task| task.queue) {
            self.core.queues[queue as usize].counters.failed += 1;
            self.mark_queue(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_is_capped() {
        let backoff = Backoff { base_ms: 1000, cap_ms: 60_000 };
        let delays: Vec<u64> = (1..=8).map(|attempt| backoff_ms(backoff, attempt, 0)).collect();
        assert_eq!(delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff_ms(backoff, u16::MAX, 0), 60_000);
        assert_eq!(backoff_ms(backoff, 1, 500), 1500);
        assert_eq!(backoff_ms(backoff, 1, i16::MIN), 500);
        let none = Backoff { base_ms: 0, cap_ms: 0 };
        assert_eq!(backoff_ms(none, 5, 500), 0);
        let widest = Backoff { base_ms: u32::MAX, cap_ms: u32::MAX };
        assert!(backoff_ms(widest, u16::MAX, 500) > u64::from(u32::MAX));
    }
}
