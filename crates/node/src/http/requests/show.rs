//! `GET /v1/requests/{id}`: whether a request was committed, and with which outcome.

use ikada_api::convert::parse_name;
use ikada_api::state::{Outcome, RecordedRequest, RequestId};
use ikada_api::v1::{OutcomeKind, RequestInfo, RequestStatus};
use ikada_replica::call::{Query, View};

use super::read::{read, show_view};
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let id =
        parse_name("id", name, RequestId::parse).map_err(|error| problems::bad_field(&error))?;
    let item: u32 = context.query_as("item", "must be a number from 0")?.unwrap_or(0);
    let query = Query::Request(context.namespace.clone(), id, item);
    let seen = read(app, context, query).await?;
    let View::Request(recorded) = &seen.view else {
        return Err(mismatch("show request"));
    };
    let document = describe(name, item, recorded.as_ref());
    show_view(context, &seen, &document)
}

fn describe(name: &str, item: u32, recorded: Option<&RecordedRequest>) -> RequestInfo {
    let (outcome, problem) = match recorded.map(|recorded| &recorded.outcome) {
        None => (None, None),
        Some(Outcome::Enqueued { created: true }) => (Some(OutcomeKind::Created), None),
        Some(Outcome::Enqueued { created: false }) => (Some(OutcomeKind::Existing), None),
        Some(Outcome::Cancelled) => (Some(OutcomeKind::Cancelled), None),
        Some(Outcome::QueueSet { .. }) => (Some(OutcomeKind::Stored), None),
        Some(Outcome::Refused { code }) => {
            (Some(OutcomeKind::Refused), Some(Box::new(problems::refusal(*code))))
        }
    };
    RequestInfo {
        request: name.to_owned(),
        item,
        status: if recorded.is_some() { RequestStatus::Committed } else { RequestStatus::NotYet },
        outcome,
        applied_ms: recorded.map(|recorded| recorded.time_ms),
        problem,
    }
}
