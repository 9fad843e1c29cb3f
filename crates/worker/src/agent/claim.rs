//! Asking for tasks: one claim under way, for all free slots.
//!
//! A claim whose answer never came may have been granted all the same. It is repeated under its number, which brings the
//! same tasks, and the worker calls the roll for a while (see `renew.rs`), so that the cluster takes back what did
//! not arrive. So the tasks claimed for this worker never exceed its slots for long.

use ikada_api::v1::ClaimedTask;

use super::held::{Held, Stage, renew_delay_ms};
use super::wait::Wait;
use super::{Agent, CallFailed, ClaimBehind, Output, Ticket};

/// How often a claim is repeated under one number. The roll call has returned its grants by then, and a number that is
/// refused for some reason must not be asked for ever.
const REPEATS_MAX: u32 = 8;

#[derive(Debug)]
pub(super) struct ClaimState {
    /// When the claim under way began.
    since_ms: Option<u64>,
    /// Number of the newest claim.
    number: u64,
    /// Tasks that the newest claim asked for, if its answer is missing.
    unanswered: Option<u32>,
    /// How often the newest claim was repeated.
    repeats: u32,
    /// Whether the claim under way went with a report, and so waits for no tasks.
    is_behind: bool,
    /// Not before this time.
    not_before_ms: u64,
    wait: Wait,
}

impl ClaimState {
    pub(super) fn new(wait: Wait) -> ClaimState {
        ClaimState {
            since_ms: None,
            number: 0,
            unanswered: None,
            repeats: 0,
            is_behind: false,
            not_before_ms: 0,
            wait,
        }
    }

    pub(super) fn under_way(&self) -> bool {
        self.since_ms.is_some()
    }
}

impl Agent {
    fn wants_tasks(&self) -> bool {
        // One whose answer never came was for slots that a report was to free: it is repeated once they are.
        let needed = self.claim.unanswered.unwrap_or(1);
        self.drain.is_none() && !self.claim.under_way() && self.free_slots() >= needed
    }

    pub(super) fn claim_wake_ms(&self) -> Option<u64> {
        self.wants_tasks().then_some(self.claim.not_before_ms)
    }

    pub(super) fn offer_claim(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        if !self.wants_tasks() || now_ms < self.claim.not_before_ms {
            return;
        }
        self.claim.since_ms = Some(now_ms);
        let count_max = match self.claim.unanswered {
            Some(count_max) if self.claim.repeats < REPEATS_MAX => {
                self.claim.repeats += 1;
                count_max
            }
            _ => {
                self.claim.number += 1;
                self.claim.repeats = 0;
                self.free_slots().min(self.config.claim_max)
            }
        };
        self.claim.unanswered = Some(count_max);
        let (number, wait_ms) = (self.claim.number, self.config.poll_wait_ms);
        outputs.push(Output::Claim { number, count_max, wait_ms });
    }

    /// A claim that goes with a report of so many tasks that are done, for their slots and those that are free: a worker whose
    /// slots are all in use would otherwise wait for two answers in a row, and the cluster write twice, for each task.
    pub(super) fn claim_behind(&mut self, done: u32, now_ms: u64) -> Option<ClaimBehind> {
        let claim = &mut self.claim;
        let wants = self.drain.is_none() && done > 0 && !claim.under_way();
        // One whose answer never came is asked for again under its own number first.
        if !wants || claim.unanswered.is_some() || now_ms < claim.not_before_ms {
            return None;
        }
        (claim.since_ms, claim.is_behind, claim.repeats) = (Some(now_ms), true, 0);
        claim.number += 1;
        let free = self.config.slots - self.held.len() as u32;
        let count_max = (free + done).min(self.config.claim_max);
        claim.unanswered = Some(count_max);
        Some(ClaimBehind { number: claim.number, count_max })
    }

    pub(super) fn take_claimed(
        &mut self,
        answer: Result<Vec<ClaimedTask>, CallFailed>,
        now_ms: u64,
        outputs: &mut Vec<Output>,
    ) {
        let Some(since_ms) = self.claim.since_ms.take() else {
            return;
        };
        let is_behind = std::mem::take(&mut self.claim.is_behind);
        // Granted before the removal, and reopened with it.
        if self.is_removed() {
            return;
        }
        let Ok(tasks) = answer else {
            let pause_ms = self.claim.wait.after_failure(&mut self.random);
            self.claim.not_before_ms = now_ms.saturating_add(pause_ms);
            self.renew.call_roll(now_ms);
            return;
        };
        self.claim.unanswered = None;
        // A server that answers "nothing" without waiting must not be asked in a tight loop; that a claim behind a report finds
        // nothing is a reason to wait with the next.
        let waited = is_behind || now_ms.saturating_sub(since_ms) >= self.config.poll_wait_ms / 2;
        if tasks.is_empty() && !waited {
            let pause_ms = self.claim.wait.after_failure(&mut self.random);
            self.claim.not_before_ms = now_ms.saturating_add(pause_ms);
        } else {
            self.claim.wait.after_success();
            self.claim.not_before_ms = now_ms;
        }
        // More than was asked for would break the promise of the slots; the surplus is returned by roll call.
        let room = self.free_slots() as usize;
        for task in tasks.into_iter().take(room) {
            self.hold(task, now_ms, outputs);
        }
    }

    fn hold(&mut self, task: ClaimedTask, now_ms: u64, outputs: &mut Vec<Output>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let ttl_ms = u64::from(task.ttl_ms);
        let held = Held {
            id: task.id.clone(),
            fence: task.fence.0,
            renew_at_ms: now_ms.saturating_add(renew_delay_ms(ttl_ms)),
            stage: Stage::Running,
            reporting: false,
        };
        self.renew.note(held.renew_at_ms);
        self.held.insert(ticket, held);
        outputs.push(Output::Run(ticket, Box::new(task)));
    }
}
