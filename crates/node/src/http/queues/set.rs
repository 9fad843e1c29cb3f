//! `PUT /v1/queues/{name}` and its short forms pause and resume. Answers with the queue as it then is.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use ikada_api::convert::{pause_order, set_queue_order};
use ikada_api::state::{Command, Order, RequestId};
use ikada_api::v1::QueueSettingsBody;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use super::describe::describe;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

/// Pause between two looks at whether all shards have the settings.
const SETTLE_PAUSE: Duration = Duration::from_millis(10);

pub(in crate::http) async fn set<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let settings: QueueSettingsBody = read_document(context, body)?;
    let (request, key) = app.request_key(context);
    let order = set_queue_order(&context.namespace, key, &context.names[0], &settings)
        .map_err(|error| problems::bad_field(&error))?;
    store(app, context, &request, order).await
}

pub(in crate::http) async fn pause<D: Door>(
    app: &App<D>,
    context: &Context,
    paused: bool,
) -> Result<Reply, Stop> {
    let (request, key) = app.request_key(context);
    let order = pause_order(&context.namespace, key, &context.names[0], paused)
        .map_err(|error| problems::bad_field(&error))?;
    store(app, context, &request, order).await
}

async fn store<D: Door>(
    app: &App<D>,
    context: &Context,
    request: &RequestId,
    order: Order,
) -> Result<Reply, Stop> {
    let Command::SetQueue(set) = &order.command else {
        return Err(mismatch("set queue"));
    };
    let (queue, name) = (set.queue.clone(), set.queue.to_string());
    let item = Item { id: name, order: Ok(order) };
    let written = write(app, context, vec![item], Some(request.as_str())).await?;
    let (_, positions) = written.only()?;
    // Answered once every shard works by the new settings. If the caller's time is over first, 202 says that they are
    // stored and on their way.
    let until = Instant::now() + context.timeout;
    loop {
        // The look afterwards is forwarded in any case: the caller was not asked to go elsewhere for it.
        let query = Query::Queue(context.namespace.clone(), queue.clone());
        let read = Request::Read(query, Consistency::Linearizable);
        let answer = call(app, context, read, Routing::Forward).await?;
        let Answer::View { view: View::Queue(Some(queue)), .. } = answer else {
            return Err(mismatch("set queue"));
        };
        let late = Instant::now() >= until;
        if queue.settled || late {
            let status = if queue.settled { StatusCode::OK } else { StatusCode::ACCEPTED };
            let mut response = show_document(context, status, &describe(app, &queue))?;
            add_positions(&mut response, &positions);
            return Ok(response);
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
}
