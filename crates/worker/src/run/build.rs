//! A worker: its name, slots and handlers, and the ways to run it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::unique_key;
use ikada_api::state::{NameError, QueueName, WorkerId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::claimed::{Claimed, TaskError, TaskResult};
use super::drive::drive;
use super::{Context, Counts, Handle, Stop, Tally};
use crate::agent::AgentConfig;

/// Most slots: a renewal names every claim held, and the server takes lists of at most this many items.
pub const SLOTS_MAX: u32 = 10_000;

/// An attempt under way.
pub type Running = Pin<Box<dyn Future<Output = Result<TaskResult, TaskError>> + Send>>;

/// Runs tasks whose program is a command or a module. Unlike a function it is not dropped when its claim is lost: it is
/// told, ends what it began, and keeps its slot until then.
pub trait RunProgram: Send + Sync {
    /// Begins an attempt.
    fn run(&self, task: Claimed, stop: Stop) -> Running;

    /// Digests of programs and inputs that are at hand: tasks that want them are preferred. Few, as each claim names them.
    fn holds(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A user's function behind one face.
pub(super) type Handler = Arc<dyn Fn(Claimed) -> Running + Send + Sync>;

/// Why a worker cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// Its name or a queue's name breaks the rules.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// It has nothing to do.
    #[error("the worker has nothing to do; give it a handler per queue with `handle`")]
    NoHandler,
    /// Two handlers for one queue.
    #[error("queue {queue} has two handlers; give it one")]
    TwoHandlers {
        /// Which queue.
        queue: String,
    },
    /// The system does not tell it when to leave.
    #[error("signals cannot be heard: {detail}; use `run_until` instead of `run`")]
    NoSignals {
        /// What the system said.
        detail: String,
    },
    /// No slots, or more than can be renewed in one call.
    #[error("the worker has {slots} slots; give it 1 to {SLOTS_MAX}")]
    BadSlots {
        /// How many were asked for.
        slots: u32,
    },
}

/// A worker that is being put together.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use ikada_api::Client;
/// use ikada_worker::{Claimed, Worker};
///
/// let client = Client::new(["http://127.0.0.1:7400"])?;
/// let worker = Worker::new(client).name("mailer-1").slots(8).handle("mail", |task: Claimed| async move {
///     let address: String = task.json()?;
///     println!("writing to {address}, fence {}", task.fence);
///     Ok(())
/// });
/// let tally = worker.run().await?;
/// println!("{} tasks done", tally.completed);
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    client: Client,
    name: Option<String>,
    session: u64,
    handlers: Vec<(String, Handler)>,
    functions: BTreeMap<String, Handler>,
    queues: Vec<String>,
    programs: Option<Arc<dyn RunProgram>>,
    labels: BTreeMap<String, String>,
    agent: AgentConfig,
}

impl Worker {
    /// A worker with two slots and a name that no other has. The client's own time limit bounds single calls; the worker
    /// goes on beyond it.
    pub fn new(client: Client) -> Worker {
        // Half of a fresh key: another process run must not share the session.
        let session = u64::from_str_radix(&unique_key()[..16], 16).unwrap_or(1);
        let agent = AgentConfig { seed: session, ..AgentConfig::default() };
        Worker {
            client,
            name: None,
            session,
            handlers: Vec::new(),
            functions: BTreeMap::new(),
            queues: Vec::new(),
            programs: None,
            labels: BTreeMap::new(),
            agent,
        }
    }

    /// Its name, as shown with each attempt; a restarted worker may keep it.
    pub fn name(mut self, name: impl Into<String>) -> Worker {
        self.name = Some(name.into());
        self
    }

    /// How many tasks it runs at one time.
    pub fn slots(mut self, slots: u32) -> Worker {
        self.agent.slots = slots;
        self
    }

    /// Something it has; tasks that want other labels are not handed to it.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Worker {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// How long its handlers may go on once it is asked to leave; then they are cancelled and their tasks given back.
    pub fn drain_timeout(mut self, timeout: Duration) -> Worker {
        self.agent.drain_ms = timeout.as_millis() as u64;
        self
    }

    /// How long one claim may wait for work. A worker that leaves waits for the claim under way.
    pub fn poll(mut self, wait: Duration) -> Worker {
        self.agent.poll_wait_ms = wait.as_millis() as u64;
        self
    }

    /// Runs the tasks of a queue by this function. It runs at least once per task and may be dropped at any await, when
    /// the claim is lost; whatever it does outside should be fenced or idempotent. Code that blocks belongs into
    /// `tokio::task::spawn_blocking`. A panic is a failed attempt.
    pub fn handle<F, Fut, R>(mut self, queue: impl Into<String>, handler: F) -> Worker
    where
        F: Fn(Claimed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, TaskError>> + Send + 'static,
        R: Into<TaskResult>,
    {
        self.handlers.push((queue.into(), wrap(handler)));
        self
    }

    /// Runs tasks that name this program by this function, whatever their queue; for the rest see `handle`. The cluster
    /// must know the name: `ikada program push --handler NAME`. Inputs are read by [`Claimed::read_input`], files are
    /// brought by [`TaskResult::with_outputs`].
    pub fn function<F, Fut, R>(mut self, program: impl Into<String>, handler: F) -> Worker
    where
        F: Fn(Claimed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, TaskError>> + Send + 'static,
        R: Into<TaskResult>,
    {
        self.functions.insert(program.into(), wrap(handler));
        self
    }

    /// Takes tasks of a queue that has no handler of its own: what they name as their program is run.
    pub fn queue(mut self, queue: impl Into<String>) -> Worker {
        self.queues.push(queue.into());
        self
    }

    /// Runs tasks whose program is a command or a module.
    pub fn programs(mut self, programs: Arc<dyn RunProgram>) -> Worker {
        self.programs = Some(programs);
        self
    }

    /// Works until this process is told to end by SIGTERM or Ctrl-C (SIGINT), then leaves in good order as
    /// [`Worker::run_until`] does.
    pub async fn run(self) -> Result<Tally, WorkerError> {
        let told =
            told_to_end().map_err(|error| WorkerError::NoSignals { detail: error.to_string() })?;
        self.run_until(told).await
    }

    /// Works until `signal` ends, then takes no more tasks, finishes or gives back what it holds, and tells what it did.
    /// Unreachable nodes and changing leaders are waited out. Dropping this future drops the handlers with it; their
    /// claims expire.
    pub async fn run_until(self, signal: impl Future<Output = ()>) -> Result<Tally, WorkerError> {
        let context = self.check()?;
        let counts = context.counts.clone();
        drive(context, signal).await;
        Ok(counts.tally())
    }

    /// Begins to work in the background.
    pub fn start(self) -> Result<Handle, WorkerError> {
        let context = self.check()?;
        let counts = context.counts.clone();
        let (drain, asked) = oneshot::channel();
        let task = tokio::spawn(async move {
            let signal = async {
                // A dropped handle leaves nobody to ask; the worker goes on.
                if asked.await.is_err() {
                    std::future::pending().await
                }
            };
            drive(context, signal).await;
        });
        Ok(Handle { drain: Some(drain), counts, task })
    }

    fn check(self) -> Result<Context, WorkerError> {
        if !(1..=SLOTS_MAX).contains(&self.agent.slots) {
            return Err(WorkerError::BadSlots { slots: self.agent.slots });
        }
        let name = self.name.unwrap_or_else(|| format!("worker-{:016x}", self.session));
        WorkerId::parse(&name)?;
        let mut handlers = BTreeMap::new();
        for (queue, handler) in self.handlers {
            QueueName::parse(&queue)?;
            if handlers.insert(queue.clone(), handler).is_some() {
                return Err(WorkerError::TwoHandlers { queue });
            }
        }
        let mut queues: BTreeSet<String> = handlers.keys().cloned().collect();
        for queue in self.queues {
            QueueName::parse(&queue)?;
            queues.insert(queue);
        }
        let runs_programs = self.programs.is_some() || !self.functions.is_empty();
        if queues.is_empty() || (handlers.is_empty() && !runs_programs) {
            return Err(WorkerError::NoHandler);
        }
        Ok(Context {
            client: self.client,
            worker: name.into(),
            session: self.session,
            queues: queues.into_iter().collect(),
            labels: self.labels,
            handlers: Arc::new(handlers),
            functions: Arc::new(self.functions),
            programs: self.programs,
            claims_key: unique_key().into(),
            agent: self.agent,
            counts: Arc::new(Counts::default()),
            board: super::progress::Board::default(),
            busy: Arc::default(),
            kept_out: Arc::default(),
            lacks_room: Arc::default(),
            silent: Arc::default(),
            apart: Arc::default(),
        })
    }
}

/// Done at the first signal to end. Listens from the moment this is called.
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn wrap<F, Fut, R>(handler: F) -> Handler
where
    F: Fn(Claimed) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, TaskError>> + Send + 'static,
    R: Into<TaskResult>,
{
    Arc::new(move |task| {
        let running = handler(task);
        Box::pin(async move { running.await.map(Into::into) })
    })
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queues: Vec<&String> = self.handlers.iter().map(|(queue, _)| queue).collect();
        formatter
            .debug_struct("Worker")
            .field("name", &self.name)
            .field("queues", &queues)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> Worker {
        Worker::new(Client::new(["http://127.0.0.1:1"]).unwrap())
    }

    async fn nothing(_: Claimed) -> Result<(), TaskError> {
        Ok(())
    }

    #[test]
    fn mistakes_are_told_before_anything_begins() {
        assert_eq!(worker().check().err(), Some(WorkerError::NoHandler));
        let none = worker().slots(0).handle("q", nothing);
        assert_eq!(none.check().err(), Some(WorkerError::BadSlots { slots: 0 }));
        let twice = worker().handle("q", nothing).handle("q", nothing);
        assert_eq!(twice.check().err(), Some(WorkerError::TwoHandlers { queue: "q".into() }));
        for bad in [worker().name("a b").handle("q", nothing), worker().handle("a b", nothing)] {
            assert!(matches!(bad.check().err(), Some(WorkerError::BadName(_))));
        }
        let good = worker().handle("b", nothing).handle("a", nothing).check().unwrap();
        assert_eq!(*good.queues, ["a", "b"]);
        assert_ne!(worker().session, worker().session);
    }
}
