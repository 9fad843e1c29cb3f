//! `POST /v1/jobs`: accepts a job as a whole, or not at all.

use hyper::StatusCode;
use ikada_api::convert::{AnyProgram, FindProgram, submit_job_order};
use ikada_api::state::{Command, Order, Reply as StateReply};
use ikada_api::v1::NewJob;

use super::pin::pin_inputs;
use super::show::show_after;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::namespaces::admit_tasks;
use crate::http::objects::write_one;
use crate::http::problems;
use crate::http::programs::with_programs;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn submit<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let job: NewJob = read_document(context, body)?;
    if let Some(id) = &job.id {
        context.subject.is(|| id.clone());
    }
    let (request, key) = app.request_key(context);
    let read = |programs: &dyn FindProgram| {
        let order = submit_job_order(&context.namespace, key.clone(), &job, programs);
        order.map_err(|error| problems::bad_field(&error).into())
    };
    let mut order = with_programs(app, context, read).await?;
    let Command::SubmitJob(submit) = &mut order.command else {
        return Err(mismatch("submit job"));
    };
    context.subject.is(|| submit.id.to_string());
    admit_tasks(app, context, 1)?;
    // Sent again after a program was pushed or an input was written anew, it is the same job.
    let asked = submit_job_order(&context.namespace, key.clone(), &job, &AnyProgram);
    pin_inputs(app, context, &mut submit.spec).await?;
    if let Ok(Order { command: Command::SubmitJob(asked), .. }) = &asked {
        submit.keep_asked(asked);
    }
    let id = submit.id.clone();
    let (reply, position) = write_one(app, context, order, &request).await?;
    let StateReply::JobSubmitted { created } = reply else {
        return Err(mismatch("submit job"));
    };
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    show_after(app, context, (id, status), &[position]).await
}
