//! Reporting: a finished task is in one call at a time, again and again until it is settled or lost.
//!
//! The fence makes what is said of each task independent of all others, so that a few calls may be under way: a task that
//! ends while another's report travels need not wait for that. A worker with many slots gathers: further calls bring a
//! fair share of its slots each, since a call for every task would cost the cluster more than it saves here. A task keeps
//! its slot until its report is settled, whichever call that takes.

use std::collections::BTreeMap;

use super::held::Stage;
use super::wait::Wait;
use super::{Agent, Done, Failure, Output, Report, ReportVerdict, Ticket};

/// Most reports under way.
pub(crate) const REPORTS_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct ReportState {
    /// Tasks held whose handler has ended: all slots need not be looked through to know that there are none.
    pub(super) waiting: usize,
    /// Calls under way by their numbers, and what they tell of.
    under_way: BTreeMap<u64, Vec<Ticket>>,
    /// Number of the newest call.
    number: u64,
    not_before_ms: u64,
    wait: Wait,
}

impl ReportState {
    pub(super) fn new(wait: Wait) -> ReportState {
        ReportState { waiting: 0, under_way: BTreeMap::new(), number: 0, not_before_ms: 0, wait }
    }

    /// Tasks that wait and are in no call.
    fn unsent(&self) -> usize {
        self.waiting - self.under_way.values().map(Vec::len).sum::<usize>()
    }
}

impl Agent {
    pub(super) fn report_wake_ms(&self) -> Option<u64> {
        self.wants_report().then_some(self.report.not_before_ms)
    }

    /// Whether one more call is worth it: the first in any case, one beside others for a share of the slots.
    fn wants_report(&self) -> bool {
        let share = (self.config.slots as usize).div_ceil(REPORTS_MAX);
        match self.report.under_way.len() {
            0 => self.report.waiting > 0,
            calls => calls < REPORTS_MAX && self.report.unsent() >= share,
        }
    }

    pub(super) fn take_finished(&mut self, ticket: Ticket, result: Result<Done, Failure>) {
        let bytes_max = self.config.result_bytes_max;
        let Some(held) = self.held.get_mut(&ticket) else {
            return;
        };
        // A result that can never be taken must not hold up the others in its report.
        let result = result.and_then(|done| match done.result.len() {
            bytes if bytes > bytes_max => {
                let error =
                    format!("the result has {bytes} bytes, at most {bytes_max} are allowed");
                Err(Failure::new(error))
            }
            _ => Ok(done),
        });
        match held.stage {
            Stage::Running => {
                held.stage = Stage::Finished(result);
                self.report.waiting += 1;
            }
            Stage::RunningLost => {
                self.held.remove(&ticket);
            }
            Stage::Finished(_) => {}
        }
    }

    pub(super) fn offer_report(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        while self.wants_report() && now_ms >= self.report.not_before_ms {
            let reports = self.gather_reports();
            self.report.number += 1;
            let number = self.report.number;
            let tickets = reports.iter().map(|report| report.claim.ticket).collect();
            self.report.under_way.insert(number, tickets);
            let done = reports.iter().filter(|report| report.result.is_ok()).count() as u32;
            let claim = self.claim_behind(done, now_ms);
            outputs.push(Output::Report { number, reports, claim });
        }
    }

    /// The next tasks that are in no call, as many as one takes.
    fn gather_reports(&mut self) -> Vec<Report> {
        let count_max = self.config.report_max.min(self.report.unsent());
        let mut reports = Vec::new();
        let mut bytes = 0;
        for (ticket, held) in &mut self.held {
            if let (Stage::Finished(result), false) = (&held.stage, held.reporting) {
                bytes += result.as_ref().map_or_else(|failure| failure.error.len(), weight);
                let full = reports.len() == count_max;
                // The first one goes in any case: it is bounded by itself.
                if full || (!reports.is_empty() && bytes > self.config.report_bytes_max) {
                    break;
                }
                held.reporting = true;
                let result = result.clone();
                reports.push(Report { claim: held.claim(*ticket), result });
            }
        }
        reports
    }

    pub(super) fn take_reported(
        &mut self,
        number: u64,
        verdicts: Vec<(Ticket, ReportVerdict)>,
        now_ms: u64,
    ) {
        let Some(tickets) = self.report.under_way.remove(&number) else {
            return;
        };
        for (ticket, verdict) in verdicts {
            if tickets.contains(&ticket) {
                self.settle(ticket, verdict);
            }
        }
        // Whatever was in the report and is still here was not settled.
        let mut unsettled = false;
        for ticket in tickets {
            let held = self.held.get_mut(&ticket);
            unsettled |= held.is_some_and(|held| std::mem::take(&mut held.reporting));
        }
        if unsettled {
            let pause_ms = self.report.wait.after_failure(&mut self.random);
            let until_ms = now_ms.saturating_add(pause_ms);
            // Another call may have come to nothing as well.
            self.report.not_before_ms = self.report.not_before_ms.max(until_ms);
        } else {
            self.report.wait.after_success();
        }
    }

    fn settle(&mut self, ticket: Ticket, verdict: ReportVerdict) {
        match verdict {
            ReportVerdict::Settled | ReportVerdict::Lost => self.release(ticket),
            ReportVerdict::Undecided => {}
            ReportVerdict::Refused(why) => {
                let Some(held) = self.held.get_mut(&ticket) else {
                    return;
                };
                match held.stage {
                    // The result cannot be taken: the attempt failed, and the reason should be seen.
                    Stage::Finished(Ok(_)) => {
                        let failure = Failure::new(format!("result refused: {why}"));
                        held.stage = Stage::Finished(Err(failure));
                        held.reporting = false;
                    }
                    // Not even the failure can be taken: nothing is left but to let the claim expire.
                    _ => self.release(ticket),
                }
            }
        }
    }

    /// Frees the slot of a task whose handler has ended.
    fn release(&mut self, ticket: Ticket) {
        if let Some(held) = self.held.remove(&ticket)
            && matches!(held.stage, Stage::Finished(_))
        {
            self.report.waiting -= 1;
        }
    }
}

/// About how many bytes a completion takes.
fn weight(done: &Done) -> usize {
    let output = |output: &ikada_api::v1::OutputItem| output.name.len() + 64 * output.chunks.len();
    done.result.len() + done.outputs.iter().map(output).sum::<usize>()
}
