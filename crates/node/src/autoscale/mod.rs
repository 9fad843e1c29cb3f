//! The autoscaler: as many workers as the backlog asks for, between a least and a most.
//!
//! Every node that is told to may run it; only the leader of shard 0 acts. What to do is a pure function (`decide.rs`) of
//! the backlog, the measured time per task (`measure.rs`) and the workers that are alive; how it is done is a driver's
//! business (`process.rs`, `exec.rs`, `kubernetes.rs`). Its workers bear a label; those that somebody else started are never drained, and their
//! slots count as there. Fewer workers: those with the least to do are drained first, and the driver hears the lower number when they are gone. Every decision that changes something is logged and kept with its reason, for all nodes.
//!
//! Leaves out: starting machines. A driver asks a platform, and believes what workers say by registering.

mod begin;
mod decide;
mod drive;
mod exec;
mod history;
mod keep;
mod kubernetes;
mod measure;
mod plan;
mod process;

pub(crate) use begin::begin;
pub use decide::{Decision, Memory, ScaleRule, Seen, decide, wanted};
pub use drive::autoscale;
pub use exec::ExecDriver;
pub use history::{History, Scaled};
pub(crate) use keep::{recall, show};
pub use kubernetes::{ApiServer, KubernetesDriver};
pub use measure::{Look, Looks};
pub use plan::{Act, Held, plan};
pub use process::ProcessDriver;

/// The label of workers that an autoscaler has started: these are its own to drain, all others are left alone.
pub const OWN_LABEL: (&str, &str) = ("ikada.autoscaled", "true");

/// What is asked of a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Own workers wanted.
    pub desired: u32,
    /// Own workers that are alive.
    pub current: u32,
    /// Why.
    pub reason: String,
}

/// How workers come and go.
#[derive(Debug)]
pub enum Driver {
    /// Processes on this machine.
    Process(ProcessDriver),
    /// A program of the operator's.
    Exec(ExecDriver),
    /// The scale of a Kubernetes workload.
    Kubernetes(KubernetesDriver),
}

impl Driver {
    /// Asks the platform for a number of workers.
    pub async fn scale(&self, wish: &Wish) -> Result<(), String> {
        match self {
            Driver::Process(driver) => driver.scale(wish),
            Driver::Exec(driver) => driver.scale(wish).await,
            Driver::Kubernetes(driver) => driver.scale(wish).await,
        }
    }

    /// Whether the platform tells each worker to leave and waits for it, so that nobody has to be drained beforehand.
    pub fn drains(&self) -> bool {
        matches!(self, Driver::Kubernetes(_))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Driver::Process(_) => "process",
            Driver::Exec(_) => "exec",
            Driver::Kubernetes(_) => "kubernetes",
        }
    }
}
