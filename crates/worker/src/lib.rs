//! Runs tasks: an agent that decides (pure), and a runner that carries it out.
//!
//! The agent owns the worker's whole conduct: how many tasks to ask for, when to renew, how long to insist on a report,
//! how to leave. It sees no clock and no socket, so that the simulator can drive it. The runner is thin: it turns the
//! agent's wishes into calls of [`ikada_api::Client`] and of the user's handlers. Users begin with [`Worker`].
//!
//! Programs that are no functions of this process (commands, WebAssembly modules) are run by `exec` behind the walls of
//! `sandbox`; both come with the feature `exec`. Names from outside become files through `beneath` alone.

pub mod agent;
#[cfg(feature = "exec")]
pub mod beneath;
pub mod builtin;
#[cfg(feature = "exec")]
pub mod exec;
pub mod run;
#[cfg(feature = "exec")]
pub mod sandbox;

pub use agent::{Agent, AgentConfig};
pub use run::{
    Claimed, Handle, RunProgram, Running, SLOTS_MAX, Stop, Stopper, Tally, TaskError, TaskResult,
    Worker, WorkerError,
};
