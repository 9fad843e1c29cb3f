//! `POST /v1/tasks/{id}/cancel`.

use hyper::StatusCode;
use ikada_api::convert::cancel_order;
use ikada_api::state::RequestKey;

use super::write::write;
use crate::http::answer::{Reply, Stop, add_positions, json};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn cancel<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let id = context.names[0].clone();
    let request = context.key.clone().unwrap_or_else(|| app.door.fresh_request_id());
    let key = RequestKey { id: request.clone(), item: 0 };
    let order =
        cancel_order(&context.namespace, key, &id).map_err(|error| problems::bad_field(&error))?;
    let written = write(app, context, vec![order], vec![id], Some(request.as_str())).await?;
    let (item, positions) = written.only()?;
    let mut response = json(StatusCode::OK, &item)?;
    add_positions(&mut response, &positions);
    Ok(response)
}
