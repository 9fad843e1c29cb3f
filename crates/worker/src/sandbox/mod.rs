//! The helper process: applies limits to itself, then runs one program and watches over it.
//!
//! A program must be restricted after the worker has let go of it and before it begins; doing that between fork and exec
//! needs unsafe code. So the worker starts its own binary again instead: *enter* makes namespaces and starts *supervise* in
//! them, which is the first process of its own world, gives up everything that the program must not have, starts the
//! program, and waits. When it ends, the kernel ends whatever is left in that world. Where there are no namespaces it
//! adopts all orphans and ends them itself. Commands of a worker that isolates nothing share helpers that stay (*steward*).
//!
//! Promises: nothing runs with less isolation than was asked for; the tree of processes never outlives the supervisor, nor
//! the supervisor its worker. Leaves out: files in and out, and the network of calls (`exec`).

mod enter;
mod filter;
mod module;
mod reap;
mod restrict;
mod spec;
mod steward;
mod supervise;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use restrict::system;
pub(crate) use spec::{GO, STOP, STREAMS, Spec, Status};
pub use spec::{Isolation, Limits, Walls};

/// First word of the helper's command line. Nobody types it.
pub const ENTER: &str = "run-enter";
const SUPERVISE: &str = "run-supervise";
/// First word of a helper that stays.
pub(crate) const STEWARD: &str = "run-steward";
const PROBE: &str = "run-probe";
/// The program is a module, run by this binary itself.
pub(crate) const MODULE: &str = "run-module";

/// Exit code of a helper that could not do its work; the status file says why.
const EXIT_HELPER: u8 = 125;

/// Runs as a helper if the command line says so; call it first thing in `main`, before any thread exists.
pub fn helper() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    let path = rest.first().map(PathBuf::from);
    match (word.to_str()?, path) {
        (ENTER, Some(path)) => Some(enter::enter(&path)),
        (SUPERVISE, Some(path)) => Some(supervise::supervise(&path)),
        (STEWARD, _) => Some(steward::steward()),
        (PROBE, _) => Some(enter::probe()),
        (MODULE, _) => Some(module::run_module(&rest)),
        _ => None,
    }
}

/// Asks a fresh process what the kernel gives; restrictions cannot be tried and taken back in our own.
pub fn probe(program: &std::path::Path) -> std::io::Result<Walls> {
    let output = std::process::Command::new(program).arg(PROBE).output()?;
    let answer = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(answer.trim()).map_err(|error| {
        let words = String::from_utf8_lossy(&output.stderr);
        std::io::Error::other(format!("the sandbox's probe gave no answer: {error} {words}"))
    })
}

/// Reads the order of this run.
fn read_spec(path: &std::path::Path) -> Result<Spec, String> {
    let text = std::fs::read(path).map_err(|error| format!("the order of the run: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("the order of the run: {error}"))
}

/// Leaves word for the worker; standard error is the program's.
fn tell(file: &mut std::fs::File, status: &Status) {
    // Nobody is left to tell of a full disk; the worker then sees the exit code alone.
    if let Ok(text) = serde_json::to_vec(status) {
        let _ = std::io::Write::write_all(file, &text);
    }
}
