//! `POST /v1/leases/{name}/acquire`: a lease, or a place in its line.

use hyper::StatusCode;
use ikada_api::convert::acquire_lease;
use ikada_api::state::{AcquireLease, Reply as StateReply};
use ikada_api::v1::{self, LeaseAnswer, LeaseState, Number};
use ikada_replica::call::{Answer, LeaseCall, Outcome, Request};

use super::{fitting_wait_ms, full_holder};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn acquire<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let body: v1::AcquireLease = read_document(context, body)?;
    let name = context.names[0].clone();
    let wish = acquire_lease(&name, &body).map_err(|error| problems::bad_field(&error))?;
    let wish = AcquireLease { holder: full_holder(context, wish.holder)?, ..wish };
    let ttl_ms = u64::from(wish.ttl_ms);
    let wait_ms = fitting_wait_ms(context, body.wait_ms);
    let lease = LeaseCall { namespace: context.namespace.clone(), wish, wait_ms };
    let outcome = match call(app, context, Request::Lease(lease), context.routing).await? {
        Answer::Written(mut outcomes) => outcomes.pop().ok_or_else(|| mismatch("acquire lease"))?,
        _ => return Err(mismatch("acquire lease")),
    };
    let blank =
        LeaseAnswer { name, state: LeaseState::Waiting, fence: None, ttl_ms: None, ahead: None };
    let shown = match outcome {
        Outcome::Reply { reply: StateReply::LeaseGranted { fence, .. }, .. } => LeaseAnswer {
            state: LeaseState::Held,
            fence: Some(Number(fence.0)),
            ttl_ms: Some(ttl_ms),
            ..blank
        },
        Outcome::Reply { reply: StateReply::LeaseWaiting { ahead }, .. } => {
            LeaseAnswer { ahead: Some(ahead), ..blank }
        }
        Outcome::Reply { reply: StateReply::Refused { code }, .. } => {
            return Err(problems::refusal(code).into());
        }
        Outcome::Reply { .. } => return Err(mismatch("acquire lease")),
        Outcome::Unknown => return Err(problems::unknown(None).into()),
        Outcome::Unavailable(reason) => return Err(problems::unavailable(&reason).into()),
    };
    show_document(context, StatusCode::OK, &shown)
}
