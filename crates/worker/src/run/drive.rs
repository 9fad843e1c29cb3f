//! The loop that owns the agent: inputs in, wishes carried out.
//!
//! Each handler is one tokio task, so that a panic stays inside it and a lost claim can cancel it. Each call of the cluster
//! is another; the agent has few under way. A program is told to end instead, and keeps its slot until
//! it has.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use ikada_api::v1::ClaimedTask;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Duration, Instant};

use super::progress::Board;
use super::{Claimed, Context, Stop, Stopper, TaskError, TaskResult, call, register};
use crate::agent::{Agent, Done, Failure, Input, Output, REPORTS_MAX, Ticket};

/// Answers of calls that wait for the agent: a claim, a renewal, the reports, and a word to leave.
const ANSWERS_MAX: usize = REPORTS_MAX + 4;
/// Inputs that one step takes at most, so that answers and handlers take turns.
const INPUTS_MAX: usize = 1_024;
/// The loop looks again after this time even if the agent waits for nothing.
const IDLE_LOOK: Duration = Duration::from_secs(60);

type Finished = Result<Done, Failure>;

/// Works until the signal ends and the agent has stopped.
pub(super) async fn drive(context: Context, signal: impl Future<Output = ()>) {
    let begin = Instant::now();
    let mut agent = Agent::new(context.agent.clone());
    let (answers, mut answered) = mpsc::channel(ANSWERS_MAX);
    let mut attempts = Attempts::default();
    let beats = tokio::spawn(register::keep(context.clone(), answers.clone()));
    let _beats = AbortOnDrop(beats.abort_handle());
    let mut signal = std::pin::pin!(signal);
    let mut draining = false;
    let mut inputs = vec![Input::Tick];
    let mut outputs = Vec::new();
    loop {
        agent.step_all(inputs.drain(..), begin.elapsed().as_millis() as u64, &mut outputs);
        for output in outputs.drain(..) {
            carry_out(&context, &answers, &mut attempts, output);
        }
        context.busy.store(attempts.handles.len() as u32, Ordering::Relaxed);
        if agent.is_stopped() {
            beats.abort();
            register::leave(&context).await;
            return;
        }
        let latest = Instant::now() + IDLE_LOOK;
        let wake_at = match agent.next_wake_ms() {
            Some(wake_ms) => latest.min(begin + Duration::from_millis(wake_ms)),
            None => latest,
        };
        inputs.push(tokio::select! {
            Some(input) = answered.recv() => input,
            Some((ticket, result)) = attempts.next() => Input::Finished(ticket, result),
            () = tokio::time::sleep_until(wake_at) => Input::Tick,
            () = &mut signal, if !draining => {
                draining = true;
                Input::Drain
            }
        });
        while inputs.len() < INPUTS_MAX
            && let Some((ticket, result)) = attempts.try_next()
        {
            inputs.push(Input::Finished(ticket, result));
        }
    }
}

fn carry_out(
    context: &Context,
    answers: &mpsc::Sender<Input>,
    attempts: &mut Attempts,
    output: Output,
) {
    match output {
        Output::Claim { number, count_max, wait_ms } => {
            let context = context.clone();
            ask(answers, async move { call::claim(&context, number, count_max, wait_ms).await });
        }
        Output::Run(ticket, task) => attempts.begin(context, ticket, *task),
        Output::Report { number, reports, claim } => {
            let (context, answers) = (context.clone(), answers.clone());
            tokio::spawn(async move {
                let (verdicts, claimed) = call::report(&context, reports, claim).await;
                // As in `ask`.
                let _ = answers.send(Input::Reported(number, verdicts)).await;
                if let Some(claimed) = claimed {
                    let _ = answers.send(claimed).await;
                }
            });
        }
        Output::Renew(claims) => {
            let context = context.clone();
            ask(answers, async move { Input::Renewed(call::renew(&context, claims).await) });
        }
        Output::Lost(ticket) => {
            context.counts.lost.fetch_add(1, Ordering::Relaxed);
            attempts.cancel(ticket);
        }
        Output::Cancel(ticket) => attempts.cancel(ticket),
        Output::Stopped { .. } => {}
    }
}

/// Ends a task with the worker, also one that is dropped in the middle.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes a call and hands its answer to the agent.
fn ask(answers: &mpsc::Sender<Input>, call: impl Future<Output = Input> + Send + 'static) {
    let answers = answers.clone();
    tokio::spawn(async move {
        // A closed queue means that the worker has stopped; nobody waits for this any more.
        let _ = answers.send(call.await).await;
    });
}

/// Handlers that run. Dropped with the loop, which ends them all.
#[derive(Default)]
struct Attempts {
    running: JoinSet<(Ticket, Finished)>,
    handles: BTreeMap<Ticket, Attempt>,
}

/// One attempt under way, and how to end it.
struct Attempt {
    abort: AbortHandle,
    stopper: Option<Stopper>,
}

/// Whether somebody else than a function of this process runs it.
fn is_program(task: &ClaimedTask) -> bool {
    task.work.as_ref().is_some_and(|work| work.program.kind != "handler")
}

/// Runs one attempt to its end.
async fn attempt(context: Context, task: ClaimedTask, stop: Stop) -> Result<TaskResult, TaskError> {
    let program = task.work.as_ref().map(|work| work.program.name.clone());
    if is_program(&task) {
        let Some(programs) = &context.programs else {
            let program = program.unwrap_or_default();
            return Err(TaskError::new(format!("this worker runs no programs such as {program}")));
        };
        let task = Claimed::read(task, context.worker, context.session, context.board)?;
        return programs.run(task, stop).await;
    }
    let function = program.as_ref().and_then(|program| context.functions.get(program));
    let Some(handler) = function.or_else(|| context.handlers.get(&task.queue)).cloned() else {
        let wanted = match program {
            Some(program) => format!("program {program}"),
            None => format!("queue {}, and the task names no program", task.queue),
        };
        return Err(TaskError::new(format!("this worker has no handler for {wanted}")));
    };
    handler(Claimed::read(task, context.worker, context.session, context.board)?).await
}

/// Takes an attempt's word about its progress back at its end, however that comes.
struct Word {
    board: Board,
    id: String,
    fence: u64,
}

impl Drop for Word {
    fn drop(&mut self) {
        self.board.forget(&self.id, self.fence);
    }
}

impl Attempts {
    fn begin(&mut self, context: &Context, ticket: Ticket, task: ClaimedTask) {
        context.counts.begun.fetch_add(1, Ordering::Relaxed);
        let (stopper, stop) = Stop::pair();
        let stopper = is_program(&task).then_some(stopper);
        let context = context.clone();
        let abort = self.running.spawn(async move {
            let _word =
                Word { board: context.board.clone(), id: task.id.clone(), fence: task.fence.0 };
            let result = attempt(context, task, stop).await;
            (ticket, result.map(TaskResult::into_done).map_err(Failure::from))
        });
        self.handles.insert(ticket, Attempt { abort, stopper });
    }

    fn cancel(&mut self, ticket: Ticket) {
        match self.handles.get(&ticket) {
            Some(Attempt { stopper: Some(stopper), .. }) => stopper.stop(),
            Some(attempt) => attempt.abort.abort(),
            None => {}
        }
    }

    /// Waits for the next handler to end; gives nothing when none runs.
    async fn next(&mut self) -> Option<(Ticket, Finished)> {
        let ended = self.running.join_next().await?;
        self.ended(ended)
    }

    fn try_next(&mut self) -> Option<(Ticket, Finished)> {
        let ended = self.running.try_join_next()?;
        self.ended(ended)
    }

    fn ended(
        &mut self,
        ended: Result<(Ticket, Finished), JoinError>,
    ) -> Option<(Ticket, Finished)> {
        let (ticket, result) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let id = error.id();
                let ticket = self.handles.iter().find(|(_, attempt)| attempt.abort.id() == id)?.0;
                (*ticket, Err(Failure::new(words(error))))
            }
        };
        self.handles.remove(&ticket);
        Some((ticket, result))
    }
}

/// What a handler that ended without a result has to say.
fn words(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "the handler was cancelled".to_owned();
    };
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    match message {
        Some(message) => format!("the handler panicked: {message}"),
        None => "the handler panicked".to_owned(),
    }
}
