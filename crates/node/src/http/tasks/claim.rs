//! `POST /v1/tasks/claim`: the next ready tasks, waiting for some if there are none.

use std::time::Duration;

use hyper::StatusCode;
use ikada_api::convert::{FieldError, claim_holds, claim_names, show_grant};
use ikada_api::state::{Grant, SessionId};
use ikada_api::v1::{ClaimAnswer, ClaimRequest, ClaimedTask};
use ikada_replica::call::{Answer, ClaimCall, Request};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::traces::traceparent;

/// A wait ends this long before the caller gives up, so that tasks granted at the last moment still reach it.
const MARGIN: Duration = Duration::from_millis(250);

/// A task as its worker sees it, with the place for its spans if there are traces.
fn show<D: Door>(app: &App<D>, context: &Context, grant: &Grant) -> ClaimedTask {
    let mut task = show_grant(grant, context.form_wanted);
    let info = app.door.info();
    if info.traced {
        let work = grant.work.as_deref();
        let (cluster, namespace) = (info.cluster, &context.namespace);
        task.traceparent = Some(traceparent(cluster, namespace, &grant.id, work, grant.fence));
    }
    task
}

pub(in crate::http) async fn claim<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let request: ClaimRequest = read_document(context, body)?;
    let claim = judge_claim(app, context, &request).map_err(|error| problems::bad_field(&error))?;
    context.subject.are(claim.queues.iter());
    let tasks = take(app, context, claim).await?;
    show_document(context, StatusCode::OK, &ClaimAnswer { tasks })
}

/// What a caller asks for, checked.
pub(super) fn judge_claim<D: Door>(
    app: &App<D>,
    context: &Context,
    request: &ClaimRequest,
) -> Result<ClaimCall, FieldError> {
    let (worker, queues, labels) = claim_names(request)?;
    let wait_ms_max = context.timeout.saturating_sub(MARGIN).as_millis() as u64;
    Ok(ClaimCall {
        namespace: context.namespace.clone(),
        worker,
        session: SessionId(request.session.0),
        queues,
        labels,
        holds: claim_holds(request)?,
        count_max: request.count_max,
        wait_ms: request.wait_ms.min(wait_ms_max),
        request: app.request_id(context),
    })
}

/// Asks for tasks under the caller's name.
pub(super) async fn take<D: Door>(
    app: &App<D>,
    context: &Context,
    mut claim: ClaimCall,
) -> Result<Vec<ClaimedTask>, Stop> {
    claim.worker = context.worker(claim.worker)?;
    match call(app, context, Request::Claim(claim), context.routing).await? {
        Answer::Claimed(grants) => {
            Ok(grants.iter().map(|grant| show(app, context, grant)).collect())
        }
        _ => Err(mismatch("claim")),
    }
}
