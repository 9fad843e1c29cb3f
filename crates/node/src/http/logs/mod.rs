//! Logs: what programs have said. A log is an object `logs/<task>/<attempt>` that the attempt's worker writes as it grows,
//! so any node can tell it, also after the worker is gone, until the task goes.

mod follow;
mod look;
mod read;
mod tell;

pub(super) use follow::{of_job, of_task};
