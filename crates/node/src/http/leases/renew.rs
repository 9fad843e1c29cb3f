//! `POST /v1/leases/{name}/renew`: proof of life; writes nothing.

use hyper::StatusCode;
use ikada_api::convert::{lease_holder, lease_name};
use ikada_api::state::Fence;
use ikada_api::v1::{LeaseAnswer, LeaseState, RenewLease};
use ikada_replica::call::{Answer, RenewOutcome, Request};

use super::full_holder;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn renew<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let body: RenewLease = read_document(context, body)?;
    let name = lease_name(&context.names[0]).map_err(|error| problems::bad_field(&error))?;
    let holder = lease_holder(&body.holder).map_err(|error| problems::bad_field(&error))?;
    let request = Request::RenewLease {
        key: (context.namespace.clone(), name.clone()),
        holder: full_holder(context, holder)?,
        fence: Fence(body.fence.0),
    };
    let outcome = match call(app, context, request, context.routing).await? {
        Answer::Renewed(mut outcomes) => outcomes.pop().ok_or_else(|| mismatch("renew lease"))?,
        _ => return Err(mismatch("renew lease")),
    };
    match outcome {
        RenewOutcome::Renewed { ttl_ms } => {
            let shown = LeaseAnswer {
                name: name.to_string(),
                state: LeaseState::Held,
                fence: Some(body.fence),
                ttl_ms: Some(ttl_ms),
                ahead: None,
            };
            show_document(context, StatusCode::OK, &shown)
        }
        RenewOutcome::Refused(code) => Err(problems::refusal(code).into()),
        RenewOutcome::Unknown => Err(problems::unknown(None).into()),
    }
}
