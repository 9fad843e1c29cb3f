//! `POST /v1/tasks/complete` and `POST /v1/tasks/fail`: how attempts ended. The fence makes both safe to repeat.

use hyper::StatusCode;
use ikada_api::convert::{FieldError, complete_order, fail_order, parse_name};
use ikada_api::state::{Order, WorkerId};
use ikada_api::v1::{CompleteRequest, FailRequest, OutcomeList};

use super::write::write;
use crate::http::answer::{Reply, Stop, add_positions, json};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, check_count, read_json};

pub(in crate::http) async fn complete<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let request: CompleteRequest = read_json(body)?;
    check_count("tasks", request.tasks.len(), app.limits.items_max)?;
    let worker = read_worker(&request.worker)?;
    let orders =
        gather(request.tasks.iter(), |item| complete_order(&context.namespace, &worker, item))?;
    let ids = request.tasks.into_iter().map(|item| item.id).collect();
    report(app, context, orders, ids).await
}

pub(in crate::http) async fn fail<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let request: FailRequest = read_json(body)?;
    check_count("tasks", request.tasks.len(), app.limits.items_max)?;
    let worker = read_worker(&request.worker)?;
    let orders = gather(request.tasks.iter(), |item| {
        fail_order(&context.namespace, &worker, item, app.draw())
    })?;
    let ids = request.tasks.into_iter().map(|item| item.id).collect();
    report(app, context, orders, ids).await
}

fn read_worker(text: &str) -> Result<WorkerId, Stop> {
    parse_name("worker", text, WorkerId::parse).map_err(|error| problems::bad_field(&error).into())
}

/// One order per item; the first bad item refuses the request, so that nothing is half done by mistake.
fn gather<'a, T: 'a>(
    items: impl Iterator<Item = &'a T>,
    order: impl Fn(&T) -> Result<Order, FieldError>,
) -> Result<Vec<Order>, Stop> {
    let ordered = items.enumerate().map(|(position, item)| {
        order(item).map_err(|error| error.inside(&format!("tasks[{position}]")))
    });
    ordered.collect::<Result<_, _>>().map_err(|error| problems::bad_field(&error).into())
}

async fn report<D: Door>(
    app: &App<D>,
    context: &Context,
    orders: Vec<Order>,
    ids: Vec<String>,
) -> Result<Reply, Stop> {
    // No key to ask about: the order itself may be repeated at any time.
    let written = write(app, context, orders, ids, None).await?;
    let mut response = json(StatusCode::OK, &OutcomeList { tasks: written.items })?;
    add_positions(&mut response, &written.positions);
    Ok(response)
}
