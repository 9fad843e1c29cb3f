//! Reporting: one call under way, all finished tasks in it, repeated until settled or lost.

use super::held::Stage;
use super::wait::Wait;
use super::{Agent, Done, Failure, Output, Report, ReportVerdict, Ticket};

#[derive(Debug)]
pub(super) struct ReportState {
    /// Tasks held whose handler has ended: all slots need not be looked through to know that there are none.
    pub(super) waiting: usize,
    under_way: bool,
    not_before_ms: u64,
    wait: Wait,
}

impl ReportState {
    pub(super) fn new(wait: Wait) -> ReportState {
        ReportState { waiting: 0, under_way: false, not_before_ms: 0, wait }
    }
}

impl Agent {
    pub(super) fn report_wake_ms(&self) -> Option<u64> {
        (!self.report.under_way && self.report.waiting > 0).then_some(self.report.not_before_ms)
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
        let idle = self.report.under_way || self.report.waiting == 0;
        if idle || now_ms < self.report.not_before_ms {
            return;
        }
        let mut reports = Vec::new();
        let mut bytes = 0;
        for (ticket, held) in &mut self.held {
            if let Stage::Finished(result) = &held.stage {
                bytes += result.as_ref().map_or_else(|failure| failure.error.len(), weight);
                let full = reports.len() == self.config.report_max.min(self.report.waiting);
                // The first one goes in any case: it is bounded by itself.
                if full || (!reports.is_empty() && bytes > self.config.report_bytes_max) {
                    break;
                }
                held.reporting = true;
                let result = result.clone();
                reports.push(Report { claim: held.claim(*ticket), result });
            }
        }
        if !reports.is_empty() {
            self.report.under_way = true;
            outputs.push(Output::Report(reports));
        }
    }

    pub(super) fn take_reported(&mut self, verdicts: Vec<(Ticket, ReportVerdict)>, now_ms: u64) {
        if !self.report.under_way {
            return;
        }
        self.report.under_way = false;
        for (ticket, verdict) in verdicts {
            self.settle(ticket, verdict);
        }
        // Whatever was in the report and is still here was not settled.
        let mut unsettled = false;
        for held in self.held.values_mut() {
            unsettled |= std::mem::take(&mut held.reporting);
        }
        if unsettled {
            let pause_ms = self.report.wait.after_failure(&mut self.random);
            self.report.not_before_ms = now_ms.saturating_add(pause_ms);
        } else {
            self.report.wait.after_success();
            self.report.not_before_ms = now_ms;
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
