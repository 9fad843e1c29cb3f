//! `DELETE /v1/schedules/{name}`.

use hyper::StatusCode;
use ikada_api::convert::delete_schedule_order;
use ikada_api::v1::ScheduleRemoved;

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::tasks::{Item, write};

pub(in crate::http) async fn delete<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let (request, key) = app.request_key(context);
    let name = context.names[0].clone();
    let order = delete_schedule_order(&context.namespace, key, &name)
        .map_err(|error| problems::bad_field(&error))?;
    let item = Item { id: name.clone(), order: Ok(order) };
    let written = write(app, context, vec![item], Some(request.as_str())).await?;
    let (_, positions) = written.only()?;
    let mut response = show_document(context, StatusCode::OK, &ScheduleRemoved { name })?;
    add_positions(&mut response, &positions);
    Ok(response)
}
