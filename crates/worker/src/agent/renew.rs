//! Renewing: one call under way, listing every claim held, in time for the most urgent one.
//!
//! The list is also a roll call: the cluster takes back what this worker was granted and does not name. After a claim
//! without an answer the roll is called every second for a while, even when nothing is held.

use super::held::{Stage, renew_delay_ms};
use super::wait::Wait;
use super::{Agent, Output, RenewVerdict, Ticket};

/// How long the roll is called after a claim without an answer: lists must lack a claim for 2 s before it is returned,
/// and a leader may have to be found first.
const ROLL_CALL_MS: u64 = 6_000;
/// Pause between two such calls.
const ROLL_CALL_EVERY_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct RenewState {
    under_way: bool,
    /// No claim held wants to be renewed before this time. Too early a time costs a look through the slots, no more.
    earliest_ms: u64,
    /// The roll is called until this time.
    roll_until_ms: u64,
    /// When it is called next.
    roll_at_ms: u64,
    not_before_ms: u64,
    wait: Wait,
}

impl RenewState {
    pub(super) fn new(wait: Wait) -> RenewState {
        RenewState {
            under_way: false,
            earliest_ms: u64::MAX,
            roll_until_ms: 0,
            roll_at_ms: 0,
            not_before_ms: 0,
            wait,
        }
    }

    /// A claim is held that wants to be renewed at this time.
    pub(super) fn note(&mut self, renew_at_ms: u64) {
        self.earliest_ms = self.earliest_ms.min(renew_at_ms);
    }

    /// Something may have been granted that did not arrive.
    pub(super) fn call_roll(&mut self, now_ms: u64) {
        if self.roll_due_ms().is_none() {
            self.roll_at_ms = now_ms;
        }
        self.roll_until_ms = now_ms.saturating_add(ROLL_CALL_MS);
    }

    fn roll_due_ms(&self) -> Option<u64> {
        (self.roll_at_ms < self.roll_until_ms).then_some(self.roll_at_ms)
    }
}

impl Agent {
    /// Looks through the slots for the claim that wants to be renewed first.
    fn find_earliest_ms(&self) -> u64 {
        let alive = self.held.values().filter(|held| held.stage != Stage::RunningLost);
        alive.map(|held| held.renew_at_ms).min().unwrap_or(u64::MAX)
    }

    pub(super) fn renew_wake_ms(&self) -> Option<u64> {
        if self.renew.under_way {
            return None;
        }
        let earliest_ms = self.renew.earliest_ms;
        let some_wait = earliest_ms < u64::MAX;
        let renew_ms = some_wait.then(|| earliest_ms.max(self.renew.not_before_ms));
        renew_ms.into_iter().chain(self.renew.roll_due_ms()).min()
    }

    pub(super) fn offer_renew(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        if now_ms >= self.renew.earliest_ms {
            self.renew.earliest_ms = self.find_earliest_ms();
        }
        let due = self.renew_wake_ms().is_some_and(|due_ms| now_ms >= due_ms);
        if !due {
            return;
        }
        self.renew.under_way = true;
        self.renew.roll_at_ms = now_ms.saturating_add(ROLL_CALL_EVERY_MS);
        let alive = self.held.iter().filter(|(_, held)| held.stage != Stage::RunningLost);
        outputs.push(Output::Renew(alive.map(|(ticket, held)| held.claim(*ticket)).collect()));
    }

    pub(super) fn take_renewed(
        &mut self,
        verdicts: Vec<(Ticket, RenewVerdict)>,
        now_ms: u64,
        outputs: &mut Vec<Output>,
    ) {
        if !self.renew.under_way {
            return;
        }
        self.renew.under_way = false;
        for (ticket, verdict) in verdicts {
            let Some(held) = self.held.get_mut(&ticket) else {
                continue;
            };
            match verdict {
                RenewVerdict::Renewed { ttl_ms } => {
                    held.renew_at_ms = now_ms.saturating_add(renew_delay_ms(ttl_ms));
                }
                RenewVerdict::Undecided => {}
                RenewVerdict::Lost => self.lose(ticket, outputs),
            }
        }
        self.renew.earliest_ms = self.find_earliest_ms();
        // Claims that are still due were not renewed: again soon, not at once.
        if self.renew.earliest_ms <= now_ms {
            let pause_ms = self.renew.wait.after_failure(&mut self.random);
            self.renew.not_before_ms = now_ms.saturating_add(pause_ms);
        } else {
            self.renew.wait.after_success();
            self.renew.not_before_ms = now_ms;
        }
    }

    fn lose(&mut self, ticket: Ticket, outputs: &mut Vec<Output>) {
        let Some(held) = self.held.get_mut(&ticket) else {
            return;
        };
        match held.stage {
            Stage::Running => {
                held.stage = Stage::RunningLost;
                outputs.push(Output::Lost(ticket));
            }
            Stage::RunningLost => {}
            // Not dropped: our own completion, reported meanwhile, also ends the claim. The report tells.
            Stage::Finished(_) => held.renew_at_ms = u64::MAX,
        }
    }
}
