//! `GET /v1/requests/{id}`: whether a request was committed, and with which outcome.

use ikada_api::convert::parse_name;
use ikada_api::state::{Outcome, RequestId};
use ikada_api::v1::{OutcomeKind, RequestInfo, RequestStatus};
use ikada_replica::call::{Answer, Query, Request, RequestFate, View};

use super::read::{Seen, show_view};
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let (id, item) = asked(context)?;
    let query = Query::Request(context.namespace.clone(), id, item);
    let read = Request::Read(query, context.consistency.clone());
    show_fate(context, item, call(app, context, read, context.routing).await?)
}

/// The request and the item asked for.
pub(super) fn asked(context: &Context) -> Result<(RequestId, u32), Stop> {
    let id = parse_name("id", &context.names[0], RequestId::parse)
        .map_err(|error| problems::bad_field(&error))?;
    let item = context.query_as("item", "must be a number from 0")?.unwrap_or(0);
    Ok((id, item))
}

/// The answer about one item of a request.
pub(super) fn show_fate(context: &Context, item: u32, answer: Answer) -> Result<Reply, Stop> {
    let Some(seen) = Seen::of(answer) else {
        return Err(mismatch("show request"));
    };
    let View::Request(fate) = &seen.view else {
        return Err(mismatch("show request"));
    };
    show_view(context, &seen, &describe(&context.names[0], item, fate))
}

fn describe(name: &str, item: u32, fate: &RequestFate) -> RequestInfo {
    let blank = |status| RequestInfo {
        request: name.to_owned(),
        item,
        status,
        outcome: None,
        applied_ms: None,
        voided_ms: None,
        count: None,
        problem: None,
    };
    let recorded = match fate {
        RequestFate::NotYet => return blank(RequestStatus::NotYet),
        RequestFate::Voided { since_ms } => {
            return RequestInfo { voided_ms: Some(*since_ms), ..blank(RequestStatus::Voided) };
        }
        RequestFate::Committed(recorded) => recorded,
    };
    let (mut count, mut problem) = (None, None);
    let outcome = match recorded.outcome {
        Outcome::Enqueued { created: true } => OutcomeKind::Created,
        Outcome::Enqueued { created: false } => OutcomeKind::Existing,
        Outcome::Cancelled => OutcomeKind::Cancelled,
        Outcome::QueueSet { .. }
        | Outcome::ScheduleSet { .. }
        | Outcome::ObjectPut { .. }
        | Outcome::JobSubmitted { .. }
        | Outcome::Growing { .. } => OutcomeKind::Stored,
        Outcome::ScheduleDeleted | Outcome::ObjectDeleted { .. } | Outcome::LeaseReleased => {
            OutcomeKind::Dropped
        }
        Outcome::JobCancelled => OutcomeKind::Cancelled,
        Outcome::Retried => OutcomeKind::Retried,
        Outcome::Dropped => OutcomeKind::Dropped,
        Outcome::Swept { count: changed, .. } => {
            count = Some(changed);
            OutcomeKind::Swept
        }
        Outcome::Refused { code } => {
            problem = Some(Box::new(problems::refusal(code)));
            OutcomeKind::Refused
        }
    };
    RequestInfo {
        outcome: Some(outcome),
        applied_ms: Some(recorded.time_ms),
        count,
        problem,
        ..blank(RequestStatus::Committed)
    }
}
