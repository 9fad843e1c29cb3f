//! What was asked and what was answered, per task, with times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One call about one task, as its caller saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) begin_us: u64,
    /// Absent when the outcome is unknown: it may take effect at any later time, or never.
    pub(super) end_us: Option<u64>,
}

/// What a call was about, with what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Submitted.
    Submit,
    /// Granted to a worker with this fence.
    Grant(u64),
    /// Completed with this fence; false: refused as stale.
    Complete(u64, bool),
    /// Seen by a linearizable read.
    Read(Seen),
}

/// What a read saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    Open,
    Done,
}

/// All calls of a run.
#[derive(Debug, Clone)]
pub(super) struct History {
    started: Instant,
    tasks: Arc<Mutex<BTreeMap<String, Vec<Op>>>>,
}

impl History {
    pub(super) fn new() -> History {
        History { started: Instant::now(), tasks: Arc::default() }
    }

    /// Microseconds since the beginning.
    pub(super) fn now_us(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    pub(super) fn note(&self, task: &str, kind: Kind, begin_us: u64, end_us: Option<u64>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.entry(task.to_owned()).or_default().push(Op { kind, begin_us, end_us });
    }

    pub(super) fn take(&self) -> BTreeMap<String, Vec<Op>> {
        std::mem::take(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
