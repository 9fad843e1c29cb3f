//! Public words to the state's types and back.
//!
//! Towards the state everything is checked here, so that a refusal can name the field; the state checks again and has
//! the last word. Towards the public nothing is lost but what readers have no use for.

mod check;
mod enqueue;
mod explain;
mod field;
mod job;
mod lease;
mod namespace;
mod order;
mod program;
mod schedule;
mod show;
mod worker;

pub use enqueue::enqueue_order;
pub use explain::show_explanation;
pub use field::{FieldError, parse_name};
pub use job::{cancel_job_order, show_job, show_job_task, submit_job_order};
pub use lease::{acquire_lease, lease_holder, lease_name, show_lease};
pub use namespace::{set_quota_order, show_namespace};
pub use order::{
    cancel_order, checkpoint_order, claim_holds, claim_names, complete_order, drop_order,
    fail_order, pause_order, read_progress, retry_order, set_queue_order,
};
pub use program::{
    AnyProgram, BUILTIN_PROGRAMS, BuiltinPrograms, FindProgram, read_inputs, read_program,
    read_settings, show_work,
};
pub use schedule::{
    delete_schedule_order, pause_schedule_order, schedule_name, set_schedule_order, show_schedule,
};
pub use show::{
    Form, show_grant, show_progress, show_queue, show_task, show_task_brief, task_state,
};
pub use worker::{register_worker, worker_name};
