//! The worker's conduct as a step function: inputs and the time in, wishes out.
//!
//! Invariants:
//! - `slots_respected`: tasks held never exceed the slots, counting those whose report is not settled yet (asserted
//!   after each step);
//! - `one_call_each`: at most one claim and one renewal are under way, and `REPORTS_MAX` reports; a finished task is in
//!   one report at a time (by construction).
//!
//! A finished task is reported until the cluster settles it or says that the claim is lost; no error of the network ends
//! that. So a worker outlives leaders: it goes on without one and reports later, if its fence is still good. A lost claim
//! whose handler still runs keeps its slot until the handler has ended, and its result is dropped. A worker that leaves
//! waits for its handlers; those that take too long are cancelled, and their tasks are given back for another worker. One that
//! was removed waits for nothing: its handlers are told to end at once, since others run their tasks.
//!
//! Leaves out: the calls themselves, the handler, and any clock.

mod claim;
mod config;
mod drain;
mod held;
mod renew;
mod report;
mod wait;

use std::collections::BTreeMap;

use ikada_api::v1::{ClaimedTask, NewTask, OutputItem};

pub use config::AgentConfig;
use held::Held;
pub(crate) use report::REPORTS_MAX;
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
    Finished(Ticket, Result<Done, Failure>),
    /// The report of this number has ended; items not mentioned are undecided.
    Reported(u64, Vec<(Ticket, ReportVerdict)>),
    /// The renewal that was under way has ended; items not mentioned are undecided.
    Renewed(Vec<(Ticket, RenewVerdict)>),
    /// Take no more tasks, finish what is held, then stop.
    Drain,
    /// The cluster has ended this session: what is held runs elsewhere by now. End what runs, and stop.
    Removed,
}

/// What a good attempt brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// The small result.
    pub result: Vec<u8>,
    /// Files that were uploaded and become visible with the completion.
    pub outputs: Vec<OutputItem>,
    /// Tasks that are submitted with the completion.
    pub then: FollowUps,
}

/// Tasks that a completion brings, beyond those that its task came with.
#[derive(Debug, Clone, Default)]
pub struct FollowUps(pub Vec<NewTask>);

impl PartialEq for FollowUps {
    fn eq(&self, other: &FollowUps) -> bool {
        // Payloads are kept as they were written, and have no other way to be compared.
        let text = |tasks: &[NewTask]| serde_json::to_string(tasks).ok();
        text(&self.0) == text(&other.0)
    }
}

impl Eq for FollowUps {}

impl From<Vec<u8>> for Done {
    fn from(result: Vec<u8>) -> Done {
        Done { result, ..Done::default() }
    }
}

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub error: String,
    /// False when trying again is pointless.
    pub retry: bool,
    /// Wait before the next attempt; the task's backoff when absent.
    pub delay_ms: Option<u64>,
}

impl Failure {
    /// A failure that may be tried again after the task's backoff.
    pub fn new(error: impl Into<String>) -> Failure {
        Failure { error: error.into(), retry: true, delay_ms: None }
    }
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
    /// Report these; answer with `Reported` and the number.
    Report {
        /// The call's number: several may be under way.
        number: u64,
        /// What is told; none of it is in another report under way.
        reports: Vec<Report>,
        /// A claim to make in the same call, behind what is told: it waits for nothing. Answer with `Claimed`, after the
        /// `Reported`.
        claim: Option<ClaimBehind>,
    },
    /// Renew these, which are all that this worker holds (perhaps none); answer with `Renewed`.
    Renew(Vec<Claim>),
    /// The claim is lost: the handler should end, its result will not count; answer with `Finished` when it has.
    Lost(Ticket),
    /// The worker leaves and gives the task back: the handler should end.
    Cancel(Ticket),
    /// The agent is at its end.
    Stopped {
        /// Tasks still held; their claims expire by themselves.
        abandoned: usize,
    },
}

/// A claim for the slots of tasks that the same call tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimBehind {
    /// The claim's number.
    pub number: u64,
    /// Most tasks to take.
    pub count_max: u32,
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
    /// Result or failure.
    pub result: Result<Done, Failure>,
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
    drain: Option<drain::DrainState>,
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
            drain: None,
            stopped: false,
            config,
        }
    }

    /// Takes one input and says what to do.
    pub fn step(&mut self, input: Input, now_ms: u64, outputs: &mut Vec<Output>) {
        self.step_all([input], now_ms, outputs);
    }

    /// Takes all inputs that have arrived, then says what to do: what ends together is reported together.
    pub fn step_all(
        &mut self,
        inputs: impl IntoIterator<Item = Input>,
        now_ms: u64,
        outputs: &mut Vec<Output>,
    ) {
        if self.stopped {
            return;
        }
        for input in inputs {
            match input {
                Input::Tick => {}
                Input::Claimed(answer) => self.take_claimed(answer, now_ms, outputs),
                Input::Finished(ticket, result) => self.take_finished(ticket, result),
                Input::Reported(number, verdicts) => {
                    self.take_reported(number, verdicts, now_ms);
                }
                Input::Renewed(verdicts) => self.take_renewed(verdicts, now_ms, outputs),
                Input::Drain => self.take_drain(now_ms),
                Input::Removed => self.take_removed(now_ms, outputs),
            }
        }
        self.offer_return(now_ms, outputs);
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
        [self.claim_wake_ms(), self.report_wake_ms(), self.renew_wake_ms(), self.drain_wake_ms()]
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
}

#[cfg(test)]
mod agent_test;
#[cfg(test)]
mod report_test;
