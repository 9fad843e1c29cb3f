//! Jobs: stages of tasks over inputs, in one shard with all their tasks and outputs.
//!
//! Promises: a job is accepted as a whole or not at all (B4-34). Its tasks come into being in bounded steps, a window
//! at a time, so that a million of them neither fill the shard nor one entry; the steps follow from the state alone, so
//! any leader goes on where the one before stopped. A stage begins when all that it reads is settled. Each task counts
//! once; what a task brings counts only while its stage is open. A job ends once: done, error or cancelled, and what is
//! left of it is cancelled in bounded steps too.
//!
//! Left out: what programs do, and where inputs outside the shard come from.

mod cancel;
mod duplicate;
mod expand;
mod pace;
mod record;
mod spec;
mod submit;
mod tend;
mod track;
mod view;

pub use cancel::CancelJob;
pub use duplicate::Duplicate;
pub use pace::JOB_RULES;
pub use record::{Job, JobKey, JobState, StageProgress};
pub use spec::{JobSpec, Settle, StageSource, StageSpec};
pub use submit::SubmitJob;
pub(crate) use track::JobMove;
pub use view::{JobPage, JobStatus, JobTask};
