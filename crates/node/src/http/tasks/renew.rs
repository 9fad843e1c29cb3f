//! `POST /v1/tasks/renew`: proof of life for claims.

use hyper::StatusCode;
use ikada_api::convert::{FieldError, parse_name, read_progress};
use ikada_api::state::{Fence, Progress, SessionId, TaskId, WorkerId};
use ikada_api::v1::{ItemOutcome, OutcomeKind, OutcomeList, RenewItem};
use ikada_replica::call::{Answer, RenewOutcome, Renewal, Request};

use super::items::{BadItem, Read, bad_item, read_renewal};
use super::write::{refused, show_refusal};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, check_count};

pub(in crate::http) async fn renew<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let (worker, session, tasks) = read_renewal(context, body)?;
    // A session that holds nothing says so by an empty list.
    if session.is_none() || !tasks.is_empty() {
        check_count("tasks", tasks.len(), app.limits.items_max)?;
    }
    let worker = parse_name("worker", &worker, WorkerId::parse)
        .map_err(|error| problems::bad_field(&error))?;
    let worker = context.worker(worker)?;
    let (mut claims, mut progress) = (Vec::with_capacity(tasks.len()), Vec::new());
    let mut shown: Vec<Result<String, ItemOutcome>> = Vec::with_capacity(tasks.len());
    for (position, item) in tasks.into_iter().enumerate() {
        shown.push(match read_claim(position, item) {
            Ok((name, claim, said)) => {
                progress.extend(said.map(|said| (claims.len() as u32, said)));
                claims.push(claim);
                Ok(name)
            }
            Err(bad) => Err(refused(bad.id, bad.problem)),
        });
    }
    let whole = shown.iter().all(Result::is_ok);
    let session = session.filter(|_| whole).map(|session| SessionId(session.0));
    let namespace = context.namespace.clone();
    let renewal = Renewal { namespace, worker, session, claims, progress };
    let mut outcomes = renew_all(app, context, renewal).await?.into_iter();
    let mut tasks = Vec::with_capacity(shown.len());
    for item in shown {
        tasks.push(match item {
            Err(refused) => refused,
            Ok(id) => {
                let outcome = outcomes.next().ok_or_else(|| mismatch("renew"))?;
                show_renewal(id, &outcome)
            }
        });
    }
    show_document(context, StatusCode::OK, &OutcomeList { tasks, claimed: None })
}

/// The name as given, the claim, and how far it is.
type ReadClaim = (String, (TaskId, Fence), Option<Progress>);

fn read_claim(position: usize, item: Read<RenewItem>) -> Read<ReadClaim> {
    let item = item?;
    let read = || -> Result<_, FieldError> {
        let id = parse_name("id", &item.id, TaskId::parse)?;
        let progress = item.progress.as_ref().map(read_progress).transpose()?;
        Ok((id, progress))
    };
    match read() {
        Ok((id, progress)) => Ok((item.id, (id, Fence(item.fence.0)), progress)),
        Err(error) => {
            let problem = bad_item(position, error);
            Err(Box::new(BadItem { id: item.id, problem }))
        }
    }
}

async fn renew_all<D: Door>(
    app: &App<D>,
    context: &Context,
    renewal: Renewal,
) -> Result<Vec<RenewOutcome>, Stop> {
    if renewal.claims.is_empty() && renewal.session.is_none() {
        return Ok(Vec::new());
    }
    match call(app, context, Request::Renew(renewal), context.routing).await? {
        Answer::Renewed(outcomes) => Ok(outcomes),
        _ => Err(mismatch("renew")),
    }
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
