//! `POST /v1/tasks/{id}/cancel`, `POST /v1/tasks/{id}/retry` and `DELETE /v1/tasks/{id}`: one task, one verb, one outcome.

use hyper::StatusCode;
use ikada_api::convert::{FieldError, cancel_order, drop_order, retry_order};
use ikada_api::state::{Namespace, Order, RequestKey};

use super::write::{Item, write};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

type MakeOrder = fn(&Namespace, RequestKey, &str) -> Result<Order, FieldError>;

pub(in crate::http) async fn cancel<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    act(app, context, cancel_order).await
}

pub(in crate::http) async fn retry<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    act(app, context, retry_order).await
}

pub(in crate::http) async fn drop_task<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    act(app, context, drop_order).await
}

async fn act<D: Door>(
    app: &App<D>,
    context: &Context,
    make_order: MakeOrder,
) -> Result<Reply, Stop> {
    let id = context.names[0].clone();
    let (request, key) = app.request_key(context);
    let order =
        make_order(&context.namespace, key, &id).map_err(|error| problems::bad_field(&error))?;
    let written =
        write(app, context, vec![Item { id, order: Ok(order) }], Some(request.as_str())).await?;
    let (item, positions) = written.only()?;
    let mut response = show_document(context, StatusCode::OK, &item)?;
    add_positions(&mut response, &positions);
    Ok(response)
}
