//! `GET /v1/queues/{name}`.

use ikada_api::convert::parse_name;
use ikada_api::state::QueueName;
use ikada_replica::call::{Query, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let queue =
        parse_name("name", name, QueueName::parse).map_err(|error| problems::bad_field(&error))?;
    let seen = read(app, context, Query::Queue(context.namespace.clone(), queue)).await?;
    match &seen.view {
        View::Queue(Some(queue)) => show_view(context, &seen, &describe(app, queue)),
        View::Queue(None) => Err(problems::not_found("queue_not_found", "queue", name).into()),
        _ => Err(mismatch("show queue")),
    }
}
