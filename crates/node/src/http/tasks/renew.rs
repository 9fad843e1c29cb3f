//! `POST /v1/tasks/renew`: proof of life for claims, and roll call of a session.

use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::{Fence, SessionId, TaskId, WorkerId};
use ikada_api::v1::{ItemOutcome, OutcomeKind, OutcomeList, RenewRequest};
use ikada_replica::call::{Answer, RenewOutcome, Renewal, Request};

use super::write::show_refusal;
use crate::http::answer::{Reply, Stop, json};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, check_count, read_json};

pub(in crate::http) async fn renew<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let request: RenewRequest = read_json(body)?;
    // A session that holds nothing says so by an empty list.
    if request.session.is_none() || !request.tasks.is_empty() {
        check_count("tasks", request.tasks.len(), app.limits.items_max)?;
    }
    let worker = parse_name("worker", &request.worker, WorkerId::parse)
        .map_err(|error| problems::bad_field(&error))?;
    let mut claims = Vec::with_capacity(request.tasks.len());
    for (position, item) in request.tasks.iter().enumerate() {
        let id = parse_name("id", &item.id, TaskId::parse)
            .map_err(|error| problems::bad_field(&error.inside(&format!("tasks[{position}]"))))?;
        claims.push((id, Fence(item.fence.0)));
    }
    let session = request.session.map(|session| SessionId(session.0));
    let renewal = Renewal { namespace: context.namespace.clone(), worker, session, claims };
    let answer = call(app, context, Request::Renew(renewal), context.routing).await?;
    let Answer::Renewed(outcomes) = answer else {
        return Err(mismatch("renew"));
    };
    if outcomes.len() != request.tasks.len() {
        return Err(mismatch("renew"));
    }
    let items = request.tasks.into_iter().zip(outcomes);
    let tasks = items.map(|(item, outcome)| show_renewal(item.id, &outcome)).collect();
    json(StatusCode::OK, &OutcomeList { tasks })
}

fn show_renewal(id: String, outcome: &RenewOutcome) -> ItemOutcome {
    let (outcome, ttl_ms, problem) = match outcome {
        RenewOutcome::Renewed { ttl_ms } => (OutcomeKind::Renewed, Some(*ttl_ms), None),
        RenewOutcome::Refused(code) => {
            let (kind, _, problem) = show_refusal(*code);
            (kind, None, problem)
        }
        RenewOutcome::Unknown => (OutcomeKind::Unknown, None, Some(problems::unknown(None))),
    };
    let problem = problem.map(Box::new);
    ItemOutcome { id, outcome, lsn: None, ttl_ms, retry_at_ms: None, problem }
}
