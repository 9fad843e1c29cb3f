//! What the worker tells its helper process about one run, and what the helper tells back.
//!
//! Both travel as files in the attempt's folder, outside of the part that the program can reach. The words on the control
//! pipe are one byte each. A helper that stays gets its orders on its control, with the streams of the command beside
//! them, and answers there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The worker says: begin. Until then the worker may still put the helper into a control group.
pub(crate) const GO: u8 = b'g';
/// The worker says: end it, with grace. A pipe that closes says the same, so that nothing outlives its worker.
pub(crate) const STOP: u8 = b's';

/// Streams that come with an order: standard input, output and error.
pub(crate) const STREAMS: usize = 3;
/// Longest order on a control.
pub(crate) const ORDER_BYTES_MAX: usize = 16 << 20;

/// How much isolation a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Everything the sandbox has; where the kernel lacks a part, nothing runs.
    Full,
    /// Everything the kernel has.
    Best,
    /// Limits and a process group only: the program can do what the worker's user can do.
    None,
}

/// How much one run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of each process, and of all together where there are control groups.
    pub memory_bytes: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Largest single file.
    pub file_bytes: u64,
    /// All files in the attempt's folder together.
    pub disk_bytes: u64,
    /// Files and folders in the attempt's folder.
    pub disk_entries: u64,
    /// All that it may write to standard output and error.
    pub output_bytes: u64,
    /// How much of that is kept as its log.
    pub log_bytes: usize,
    /// Longest run, whatever the task says.
    pub wall_ms: u64,
    /// Most steps of a module, where a byte of a bulk operation is one, too; its time bounds them as well.
    pub module_steps: u64,
    /// Time between the polite signal and the last one.
    pub grace_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes: 1 << 30,
            // Room for interpreters with thread pools; far below what makes a machine stall.
            processes: 256,
            open_files: 1_024,
            file_bytes: 1 << 30,
            disk_bytes: 4 << 30,
            disk_entries: 100_000,
            output_bytes: 64 << 20,
            log_bytes: 1 << 20,
            wall_ms: 3_600_000,
            module_steps: u64::MAX,
            grace_ms: 5_000,
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Program and arguments; never a shell line. `None` as program means this binary itself.
    pub(crate) program: Option<String>,
    pub(crate) arguments: Vec<String>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Working directory; the only place where it may write.
    pub(crate) folder: PathBuf,
    /// What it finds on standard input.
    pub(crate) stdin: PathBuf,
    /// Where the helper writes its [`Status`].
    pub(crate) status: PathBuf,
    /// What it may read and run beside the system's own folders.
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) isolation: Isolation,
    /// Whether it keeps the machine's network.
    pub(crate) network: bool,
    pub(crate) limits: Limits,
    /// Whether it runs inside namespaces; the first helper decides and tells the second.
    pub(crate) inside: bool,
}

/// How a run ended, in the helper's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was told to end, and did or was ended.
    Stopped,
    /// It could not be started.
    NotStarted(String),
    /// The isolation asked for is not to be had here.
    NoIsolation(String),
}

/// What the kernel of this machine gives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// Own processes, mounts, network and users.
    pub namespaces: bool,
    /// Files beyond the folder are out of reach.
    pub landlock: bool,
    /// System calls are filtered.
    pub seccomp: bool,
    /// Commands run as users of their own; the worker knows, its helper does not.
    #[serde(default)]
    pub users: bool,
    /// Why a part is missing.
    pub missing: Vec<String>,
}

impl Walls {
    /// Whether nothing is missing.
    pub fn is_full(&self) -> bool {
        self.namespaces && self.landlock && self.seccomp && self.users
    }
}
