//! `POST /v1/leases/{name}/release`: gives a lease back, or a place in its line; by force, takes it from another.

use hyper::StatusCode;
use ikada_api::Problem;
use ikada_api::convert::{lease_holder, lease_name};
use ikada_api::routes::Operation;
use ikada_api::state::{Command, Fence, HolderName, Order, ReleaseLease, Role};
use ikada_api::v1::{self, LeaseReleased};

use super::full_holder;
use crate::auth::Principal;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

/// Who may take a lease from another.
const ROLES_OF_FORCE: [Role; 2] = [Role::Admin, Role::Operator];

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
        holder: match body.force {
            false => full_holder(context, holder)?,
            true => forced(context, holder)?,
        },
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

/// The holder from whom a lease is taken: the whole name, which only those who run the cluster may give for another.
fn forced(context: &Context, holder: HolderName) -> Result<HolderName, Problem> {
    let Principal { name, role, .. } = &*context.principal;
    let own = holder.as_str().strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'));
    if !own && !ROLES_OF_FORCE.contains(role) {
        return Err(problems::forbidden_role(Operation::ReleaseLease, *role, &ROLES_OF_FORCE));
    }
    context.subject.is(|| format!("{} by force from {holder}", context.names[0]));
    Ok(holder)
}
