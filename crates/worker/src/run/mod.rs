//! Carries out what the agent decides, on tokio: one task owns the agent, each wish becomes a call of its own.
//!
//! The handler is ordinary blocking code and runs on the blocking pool; a panic in it is a failed attempt, not the end
//! of the worker. Dropping the [`Handle`] does not stop the worker; `drain` does.

mod call;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ikada_api::Client;
use ikada_api::v1::ClaimedTask;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use crate::agent::{Agent, AgentConfig, Input, Output, Ticket};

/// The user's code: a task in, a result or an error out.
pub type Handler = Arc<dyn Fn(&ClaimedTask) -> Result<Vec<u8>, String> + Send + Sync>;

/// Inputs that wait for the agent; each slot and each call has at most one under way, so this is ample.
const INPUTS_MAX: usize = 1_024;

/// Who the worker is and what it takes.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Its name.
    pub worker: String,
    /// Its process run; another one after each restart.
    pub session: u64,
    /// The queues it takes from, at least one.
    pub queues: Vec<String>,
    /// What it has; tasks that want other labels are not handed to it.
    pub labels: BTreeMap<String, String>,
    /// Its conduct.
    pub agent: AgentConfig,
}

/// What a worker has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts begun.
    pub begun: u64,
    /// Completions that count.
    pub completed: u64,
    /// Failures that count.
    pub failed: u64,
    /// Attempts whose claim was lost: another worker runs them.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    begun: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl Counts {
    fn tally(&self) -> Tally {
        Tally {
            begun: self.begun.load(Ordering::Relaxed),
            completed: self.completed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Handle {
    drain: watch::Sender<bool>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Handle {
    /// Asks it to finish what it holds and stop.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        self.counts.tally()
    }

    /// Waits for its end (after `drain`).
    pub async fn wait(self) -> Tally {
        // The loop has no panics of its own; if it was aborted the counts still hold.
        let _ = self.task.await;
        self.counts.tally()
    }
}

/// Starts a worker on the current runtime.
pub fn start(client: Client, config: RunConfig, handler: Handler) -> Handle {
    let (drain, drained) = watch::channel(false);
    let counts = Arc::new(Counts::default());
    let (inputs, queue) = mpsc::channel(INPUTS_MAX);
    let context = Context {
        client,
        config: Arc::new(config),
        claims_key: ikada_api::client::unique_key().into(),
        handler,
        counts: counts.clone(),
        inputs,
    };
    let task = tokio::spawn(drive(context, queue, drained));
    Handle { drain, counts, task }
}

/// What every call needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) config: Arc<RunConfig>,
    /// Request ids of this run's claims begin so.
    pub(crate) claims_key: Arc<str>,
    handler: Handler,
    pub(crate) counts: Arc<Counts>,
    inputs: mpsc::Sender<Input>,
}

async fn drive(
    context: Context,
    mut queue: mpsc::Receiver<Input>,
    mut drained: watch::Receiver<bool>,
) {
    let begin = Instant::now();
    let mut agent = Agent::new(context.config.agent.clone());
    let mut outputs = Vec::new();
    let mut draining = false;
    let mut input = Input::Tick;
    loop {
        agent.step(input, begin.elapsed().as_millis() as u64, &mut outputs);
        for output in outputs.drain(..) {
            carry_out(&context, output);
        }
        if agent.is_stopped() {
            return;
        }
        let wake_at = match agent.next_wake_ms() {
            Some(wake_ms) => begin + Duration::from_millis(wake_ms),
            None => Instant::now() + Duration::from_secs(3600),
        };
        input = tokio::select! {
            Some(input) = queue.recv() => input,
            () = tokio::time::sleep_until(wake_at) => Input::Tick,
            changed = drained.changed(), if !draining => {
                draining = changed.is_err() || *drained.borrow();
                // A dropped handle leaves nobody to ask for a drain; the worker goes on.
                if changed.is_err() { Input::Tick } else { Input::Drain }
            }
        };
    }
}

fn carry_out(context: &Context, output: Output) {
    let context = context.clone();
    match output {
        Output::Claim { number, count_max, wait_ms } => {
            tokio::spawn(async move {
                let answer = call::claim(&context, number, count_max, wait_ms).await;
                context.give_back(Input::Claimed(answer)).await;
            });
        }
        Output::Run(ticket, task) => {
            context.counts.begun.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(run(context, ticket, task));
        }
        Output::Report(reports) => {
            tokio::spawn(async move {
                let verdicts = call::report(&context, reports).await;
                context.give_back(Input::Reported(verdicts)).await;
            });
        }
        Output::Renew(claims) => {
            tokio::spawn(async move {
                let verdicts = call::renew(&context, claims).await;
                context.give_back(Input::Renewed(verdicts)).await;
            });
        }
        Output::Lost(_) => {
            context.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        Output::Stopped { .. } => {}
    }
}

async fn run(context: Context, ticket: Ticket, task: Box<ClaimedTask>) {
    let handler = context.handler.clone();
    let result = tokio::task::spawn_blocking(move || handler(&task)).await;
    let result = result.unwrap_or_else(|_| Err("the handler panicked".to_owned()));
    context.give_back(Input::Finished(ticket, result)).await;
}

impl Context {
    async fn give_back(&self, input: Input) {
        // A closed queue means that the worker has stopped; nobody waits for this any more.
        let _ = self.inputs.send(input).await;
    }
}
