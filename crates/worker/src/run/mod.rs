//! Carries out what the agent decides, on tokio: handlers are the user's futures, wishes are calls of the client.
//!
//! Promises: at most as many handlers run as there are slots; a claim is renewed while its handler runs and while its report
//! is not settled; a handler whose claim is lost is cancelled; a panic is a failed attempt, not the end of the worker.
//! Results and failures travel in batches. Unreachable nodes and changing leaders are waited out.
//!
//! Leaves out: every decision (the agent's), and connections (the client's).

mod build;
mod call;
mod claimed;
mod drive;
mod inputs;
mod progress;
mod register;
mod stop;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ikada_api::Client;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use build::{RunProgram, Running, SLOTS_MAX, Worker, WorkerError};
pub(crate) use claimed::checkpoint_place;
pub use claimed::{Claimed, TaskError, TaskResult};
pub use stop::{Stop, Stopper};

use crate::agent::AgentConfig;

/// What a worker has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts begun.
    pub begun: u64,
    /// Completions that count.
    pub completed: u64,
    /// Failures that count, tasks given back included.
    pub failed: u64,
    /// Attempts whose claim was lost: another worker runs them.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
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

/// A worker in the background. Dropping this does not stop the worker; `drain` does.
#[derive(Debug)]
pub struct Handle {
    drain: Option<oneshot::Sender<()>>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Handle {
    /// Asks it to finish what it holds and stop.
    pub fn drain(&mut self) {
        if let Some(drain) = self.drain.take() {
            // A worker that has ended needs no word.
            let _ = drain.send(());
        }
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

/// What every call needs.
#[derive(Clone)]
struct Context {
    client: Client,
    worker: Arc<str>,
    session: u64,
    queues: Vec<String>,
    labels: BTreeMap<String, String>,
    handlers: Arc<BTreeMap<String, build::Handler>>,
    /// Functions by the program that a task names.
    functions: Arc<BTreeMap<String, build::Handler>>,
    /// Whoever runs commands and modules.
    programs: Option<Arc<dyn RunProgram>>,
    /// Request ids of this run's claims begin so.
    claims_key: Arc<str>,
    agent: AgentConfig,
    counts: Arc<Counts>,
    /// How far attempts are.
    board: progress::Board,
    /// Slots that are busy.
    busy: Arc<AtomicU32>,
    /// Another session lives under this name.
    kept_out: Arc<AtomicBool>,
    /// Completions wait for room, and somebody was told.
    lacks_room: Arc<AtomicBool>,
    /// Some node does not take it that claims say what the worker has.
    silent: Arc<AtomicBool>,
    /// Some node takes no claims with reports.
    apart: Arc<AtomicBool>,
}
