//! Runs programs: private folder, inputs as files, a sandboxed process, outputs and log.
//!
//! A program sees: the payload on standard input, inputs as files in `$IKADA_IN`, settings as `IKADA_SETTING_*` and as the
//! file `$IKADA_SETTINGS`, its task, attempt and fence as environment. It gives: files in `$IKADA_OUT`, a small JSON value in
//! `$IKADA_RESULT`, how far it is in `$IKADA_CHECKPOINT`, lines on its outputs (kept as the attempt's log), and lines `ikada:progress 0.4 some words`.
//!
//! Promises: every attempt sees the submitted settings (B4-13); a program is never a shell line; when an attempt is
//! over, its processes and its folder are gone; a slot is free within the grace time and two seconds (B4-30).
//! Leaves out: the walls themselves (`sandbox`) and whose result counts (the cluster's fence).

mod at_hand;
mod bound;
mod cache;
mod capture;
mod checkpoints;
mod credentials;
mod deliver;
mod fetch;
mod folder;
mod folders;
mod home;
mod logs;
mod near;
mod outputs;
mod process;
mod programs;
mod run;
mod stewards;
mod stores;
mod strays;
mod users;

use std::path::PathBuf;
use std::time::Duration;

pub use bound::{GroupRule, Groups};
pub use capture::{Log, Progress};
pub use credentials::Exposure;
pub(crate) use deliver::{Carried, Destination, abreast_at, store};
pub use fetch::{Urls, local_path};
pub use folder::{Folder, closed_way};
#[cfg(test)]
pub(crate) use near::near_test::near_on_disk;
pub(crate) use near::{NearBytes, ObjectBytes, Objects};
pub use outputs::FoundOutput;
pub use programs::Programs;
pub use run::{Sandbox, SandboxError};
pub use stores::is_store;
pub(crate) use stores::{UrlReader, Wanted};

use crate::run::{Stop, TaskError, TaskResult};
use crate::sandbox::{Isolation, Limits};

/// What the operator of this worker allows.
#[derive(Debug, Clone)]
pub struct ExecConfig {
    /// Where attempts have their folders and programs are kept.
    pub work_dir: PathBuf,
    /// Which commands may run: absolute paths or plain names, `{file}` for files that came with their program, `*` for
    /// all.
    pub commands: Vec<String>,
    /// What commands may read and run beside the system's own folders.
    pub readable: Vec<PathBuf>,
    /// Whether commands keep the machine's network.
    pub network: bool,
    /// How much isolation programs get.
    pub isolation: Isolation,
    /// How much one run may use.
    pub limits: Limits,
    /// Whether control groups bound a run as a whole.
    pub groups: GroupRule,
    /// The binary to start as helper; it must call [`crate::sandbox::helper`] first thing.
    pub helper: PathBuf,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// A command.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// A file that came with it.
        file: Option<PathBuf>,
    },
    /// A WebAssembly module.
    Module {
        /// Where it lies.
        file: PathBuf,
        /// The export to call.
        entry: String,
    },
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The task.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Standard input.
    pub payload: Vec<u8>,
    /// The claim's fence.
    pub fence: u64,
    /// Which try this is, from 1.
    pub attempt: u16,
    /// Longest time for the whole attempt.
    pub timeout: Option<Duration>,
    /// Settings as submitted.
    pub settings: Vec<(String, String)>,
    /// Where its spans belong, if the nodes send traces.
    pub traceparent: Option<String>,
    /// What is run.
    pub code: Code,
}

/// What a good run gave. The files vanish with the folder.
#[derive(Debug)]
pub struct Finish {
    /// The small result.
    pub result: TaskResult,
    /// Files in `$IKADA_OUT`.
    pub outputs: Vec<FoundOutput>,
}

/// The failure of a run that was told to end.
pub(crate) fn stopped() -> TaskError {
    TaskError::new("the attempt was stopped: its claim is gone, or its worker leaves")
}
