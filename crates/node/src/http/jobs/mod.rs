//! Jobs: one file per verb.

mod cancel;
mod follow;
mod list;
mod pin;
mod result;
mod show;
mod submit;
mod tasks;

use ikada_api::routes::Operation;

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;

/// Answers a request about jobs.
pub(super) async fn answer<D: Door>(
    app: &App<D>,
    operation: Operation,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    match operation {
        Operation::SubmitJob => submit::submit(app, context, body).await,
        Operation::ListJobs => list::list(app, context).await,
        Operation::ShowJob => show::show(app, context).await,
        Operation::ShowJobResult => result::result(app, context).await,
        Operation::ListJobTasks => tasks::tasks(app, context).await,
        Operation::FollowJob => follow::follow(app, context).await,
        Operation::CancelJob => cancel::cancel(app, context).await,
        _ => Err(mismatch("job")),
    }
}
