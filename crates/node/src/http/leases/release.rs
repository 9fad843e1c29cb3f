//! `POST /v1/leases/{name}/release`: gives a lease back, or a place in its line.

use hyper::StatusCode;
use ikada_api::convert::{lease_holder, lease_name};
use ikada_api::state::{Command, Fence, Order, ReleaseLease};
use ikada_api::v1::{self, LeaseReleased};

use super::full_holder;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

pub(in crate::http) async fn release<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let body: v1::ReleaseLease = read_document(context, body)?;
    let name = lease_name(&context.names[0]).map_err(|error| problems::bad_field(&error))?;
    let holder = lease_holder(&body.holder).map_err(|error| problems::bad_field(&error))?;
    let release = ReleaseLease {
        name: name.clone(),
        holder: full_holder(context, holder)?,
        fence: body.fence.map(|fence| Fence(fence.0)),
    };
    let (request, key) = app.request_key(context);
    let command = Command::ReleaseLease(release);
    let order = Order { namespace: context.namespace.clone(), request: Some(key), command };
    let item = Item { id: name.to_string(), order: Ok(order) };
    let written = write(app, context, vec![item], Some(request.as_str())).await?;
    let (_, positions) = written.only()?;
    let shown = LeaseReleased { name: name.to_string() };
    let mut response = show_document(context, StatusCode::OK, &shown)?;
    add_positions(&mut response, &positions);
    Ok(response)
}
