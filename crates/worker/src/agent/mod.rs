//! The worker's conduct as a step function: inputs and the time in, wishes out.
//!
//! Invariants:
//! - `slots_respected`: tasks held never exceed the slots, counting those whose report is not settled yet (asserted
//!   after each step);
//! - `one_call_each`: at most one claim, one report and one renewal are under way (by construction).
//!
//! A finished task is reported until the cluster settles it or says that the claim is lost; no error of the network ends
//! that. So a worker outlives leaders: it goes on without one and reports later, if its fence is still good. A lost claim
//! whose handler still runs keeps its slot until the handler returns, and its result is dropped.
//!
//! Leaves out: the calls themselves, the handler, and any clock.

mod claim;
mod config;
mod held;
mod renew;
mod report;
mod wait;

use std::collections::BTreeMap;

use ikada_api::v1::ClaimedTask;

pub use config::AgentConfig;
use held::Held;
use wait::Wait;

/// The agent's own number for one task it holds: fences of different shards may coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The claim that was under way has ended.
    Claimed(Result<Vec<ClaimedTask>, CallFailed>),
    /// The handler has returned.
    Finished(Ticket, Result<Vec<u8>, String>),
    /// The report that was under way has ended; items not mentioned are undecided.
    Reported(Vec<(Ticket, ReportVerdict)>),
    /// The renewal that was under way has ended; items not mentioned are undecided.
    Renewed(Vec<(Ticket, RenewVerdict)>),
    /// Take no more tasks, finish what is held, then stop.
    Drain,
}

/// A call that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFailed;

/// What the cluster said about a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportVerdict {
    /// It counts.
    Settled,
    /// The claim is no longer ours; the report can never count.
    Lost,
    /// The report itself is not acceptable (a result that is too large, say).
    Refused(String),
    /// Nobody knows; report again.
    Undecided,
}

/// What the cluster said about a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewVerdict {
    /// The claim lives on for this long.
    Renewed {
        /// Lifetime from now.
        ttl_ms: u64,
    },
    /// The claim is no longer ours.
    Lost,
    /// Nobody knows; renew again.
    Undecided,
}

/// Something to do.
#[derive(Debug)]
pub enum Output {
    /// Ask for tasks; answer with `Claimed`.
    Claim {
        /// The claim's number: a claim whose answer never came is asked for again under the same one, so that what it
        /// was granted is found.
        number: u64,
        /// Most tasks to take.
        count_max: u32,
        /// How long the cluster may hold the request.
        wait_ms: u64,
    },
    /// Run this task; answer with `Finished`.
    Run(Ticket, Box<ClaimedTask>),
    /// Report these; answer with `Reported`.
    Report(Vec<Report>),
    /// Renew these, which are all that this worker holds (perhaps none); answer with `Renewed`.
    Renew(Vec<Claim>),
    /// The claim is lost: the handler may stop early, its result will not count.
    Lost(Ticket),
    /// The agent is at its end.
    Stopped {
        /// Tasks still held; their claims expire by themselves.
        abandoned: usize,
    },
}

/// A claim by its public names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The agent's number.
    pub ticket: Ticket,
    /// The task.
    pub id: String,
    /// The claim's fence.
    pub fence: u64,
}

/// A finished attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which claim.
    pub claim: Claim,
    /// Result or error.
    pub result: Result<Vec<u8>, String>,
}

/// One worker.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    held: BTreeMap<Ticket, Held>,
    next_ticket: u64,
    claim: claim::ClaimState,
    report: report::ReportState,
    renew: renew::RenewState,
    /// When to stop at the latest; present while draining.
    drain_until_ms: Option<u64>,
    stopped: bool,
    random: fastrand::Rng,
}

impl Agent {
    /// An agent that holds nothing. It begins with its first `step`.
    pub fn new(config: AgentConfig) -> Agent {
        assert!(config.slots > 0, "a worker needs at least one slot");
        let wait = Wait::new(config.retry_base_ms, config.retry_cap_ms);
        Agent {
            random: fastrand::Rng::with_seed(config.seed),
            held: BTreeMap::new(),
            next_ticket: 1,
            claim: claim::ClaimState::new(wait),
            report: report::ReportState::new(wait),
            renew: renew::RenewState::new(wait),
            drain_until_ms: None,
            stopped: false,
            config,
        }
    }

    /// Takes one input and says what to do.
    pub fn step(&mut self, input: Input, now_ms: u64, outputs: &mut Vec<Output>) {
        if self.stopped {
            return;
        }
        match input {
            Input::Tick => {}
            Input::Claimed(answer) => self.take_claimed(answer, now_ms, outputs),
            Input::Finished(ticket, result) => self.take_finished(ticket, result),
            Input::Reported(verdicts) => self.take_reported(verdicts, now_ms),
            Input::Renewed(verdicts) => self.take_renewed(verdicts, now_ms, outputs),
            Input::Drain => {
                let until_ms = now_ms.saturating_add(self.config.drain_ms);
                self.drain_until_ms.get_or_insert(until_ms);
            }
        }
        self.offer_report(now_ms, outputs);
        self.offer_renew(now_ms, outputs);
        self.offer_claim(now_ms, outputs);
        self.consider_stop(now_ms, outputs);
        assert!(self.held.len() <= self.config.slots as usize, "slots_respected");
    }

    /// When `step` must be called with a `Tick` at the latest; absent when only other inputs matter.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.stopped {
            return None;
        }
        [self.claim_wake_ms(), self.report_wake_ms(), self.renew_wake_ms(), self.drain_until_ms]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether `Stopped` was given out.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Slots that hold nothing.
    pub fn free_slots(&self) -> u32 {
        self.config.slots - self.held.len() as u32
    }

    /// Stops when drained, or when the time for that is over.
    fn consider_stop(&mut self, now_ms: u64, outputs: &mut Vec<Output>) {
        let Some(until_ms) = self.drain_until_ms else {
            return;
        };
        // A claim under way may still hand tasks out; waiting for it wastes none of them.
        let drained = self.held.is_empty() && !self.claim.under_way();
        if drained || now_ms >= until_ms {
            self.stopped = true;
            outputs.push(Output::Stopped { abandoned: self.held.len() });
        }
    }
}

#[cfg(test)]
mod agent_test;
