//! `POST /v1/tasks/{id}/checkpoint`: how far the running attempt has come. The fence makes it safe to repeat.

use hyper::StatusCode;
use ikada_api::convert::checkpoint_order;
use ikada_api::v1::NewCheckpoint;

use super::report::read_worker;
use super::write::{Item, write};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::confirm;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn checkpoint<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let id = context.names[0].clone();
    let body: NewCheckpoint = read_document(context, body)?;
    let worker = read_worker(context, &body.worker)?;
    let order = checkpoint_order(&context.namespace, &worker, &id, &body)
        .map_err(|error| problems::bad_field(&error))?;
    confirm(app, &order).await?;
    let written = write(app, context, vec![Item { id, order: Ok(order) }], None).await?;
    let (item, positions) = written.only()?;
    let mut response = show_document(context, StatusCode::OK, &item)?;
    add_positions(&mut response, &positions);
    Ok(response)
}
