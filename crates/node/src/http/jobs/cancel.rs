//! `POST /v1/jobs/{id}/cancel`.

use hyper::StatusCode;
use ikada_api::convert::cancel_job_order;
use ikada_api::state::Reply as StateReply;

use super::show::{job_id, show_after};
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::write_one;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn cancel<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let id = job_id(context)?;
    let (request, key) = app.request_key(context);
    let order = cancel_job_order(&context.namespace, key, id.as_str())
        .map_err(|error| problems::bad_field(&error))?;
    match write_one(app, context, order, &request).await? {
        (StateReply::JobCancelled, position) => {
            show_after(app, context, (id, StatusCode::OK), &[position]).await
        }
        _ => Err(mismatch("cancel job")),
    }
}
