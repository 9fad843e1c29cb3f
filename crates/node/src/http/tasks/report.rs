//! `POST /v1/tasks/complete` and `POST /v1/tasks/fail`: how attempts ended. The fence makes both safe to repeat.

use std::cell::Cell;
use std::time::Duration;

use hyper::StatusCode;
use ikada_api::convert::{FieldError, FindProgram, complete_order, fail_order, parse_name};
use ikada_api::state::{Order, WorkerId};
use ikada_api::v1::{
    ClaimRequest, ClaimedTask, CompleteItem, CompleteRequest, FailItem, FailRequest, OutcomeList,
};
use ikada_replica::call::ClaimCall;
use tokio::time::timeout;

use super::claim::{judge_claim, take};
use super::items::{Read, bad_item, read_report};
use super::write::{Item, Written, write};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_follow_ups;
use crate::http::objects::confirm;
use crate::http::problems;
use crate::http::programs::with_programs;
use crate::http::request::{Context, check_count};

/// What is decided waits no longer for the tasks that are wanted beside it: another shard may be without a leader.
const CLAIM_PATIENCE: Duration = Duration::from_millis(250);

/// Reads a list of completions, and the wish for tasks that comes with it. A list with items that cannot be read
/// brings no wish: who sent it should look at that first.
pub(in crate::http) fn read_completions<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
    programs: &dyn FindProgram,
) -> Result<(Vec<Item>, Option<ClaimCall>), Stop> {
    let claim = Cell::new(None);
    let (name, tasks) = read_report(context, body, |request: CompleteRequest| {
        claim.set(request.claim);
        (request.worker, request.tasks)
    })?;
    check_count("tasks", tasks.len(), app.limits.items_max)?;
    let worker = read_worker(context, &name)?;
    let claim = claim.take().map(|claim| judge_claim_behind(app, context, &name, &claim));
    let claim = claim.transpose().map_err(|error| problems::bad_field(&error))?;
    let items = gather(context, tasks, |item: CompleteItem| {
        let order = complete_order(&context.namespace, &worker, &item, programs);
        (item.id, order)
    });
    Ok((items, claim))
}

/// A wish for tasks in the place of those that are done.
fn judge_claim_behind<D: Door>(
    app: &App<D>,
    context: &Context,
    worker: &str,
    request: &ClaimRequest,
) -> Result<ClaimCall, FieldError> {
    if request.worker != worker {
        return Err(FieldError::bad_value("claim.worker", "must be the worker of the report"));
    }
    if request.wait_ms != 0 {
        let rule = "must be 0: a report waits for no tasks";
        return Err(FieldError::bad_value("claim.wait_ms", rule));
    }
    judge_claim(app, context, request).map_err(|error| error.inside("claim"))
}

/// Reads a list of failures.
pub(in crate::http) fn read_failures<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Vec<Item>, Stop> {
    let (worker, tasks) =
        read_report(context, body, |request: FailRequest| (request.worker, request.tasks))?;
    check_count("tasks", tasks.len(), app.limits.items_max)?;
    let worker = read_worker(context, &worker)?;
    Ok(gather(context, tasks, |item: FailItem| {
        let order = fail_order(&context.namespace, &worker, &item);
        (item.id, order)
    }))
}

/// The answer to a report, with the tasks that it was granted.
pub(in crate::http) fn show_report(
    context: &Context,
    written: Written,
    claimed: Option<Vec<ClaimedTask>>,
) -> Result<Reply, Stop> {
    let outcomes = OutcomeList { tasks: written.items, claimed };
    let mut response = show_document(context, StatusCode::OK, &outcomes)?;
    add_positions(&mut response, &written.positions);
    Ok(response)
}

pub(in crate::http) async fn complete<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    // No key to ask about: the order itself may be repeated at any time.
    let read = |programs: &dyn FindProgram| read_completions(app, context, body, programs);
    let (mut items, claim) = with_programs(app, context, read).await?;
    admit_follow_ups(app, context, &mut items);
    confirm_outputs(app, &mut items).await;
    let written = write(app, context, items, None);
    let Some(claim) = claim else {
        return show_report(context, written.await?, None);
    };
    // The claim counts on the slots of the tasks that are done: one log, or else the wait, keeps it behind them.
    let (one_log, mut claimed) = (app.door.has_one_log(), None);
    tokio::pin!(written);
    let claim = take(app, context, claim);
    tokio::pin!(claim);
    let written = loop {
        tokio::select! {
            biased;
            written = &mut written => break written?,
            tasks = &mut claim, if one_log && claimed.is_none() => claimed = Some(tasks),
        }
    };
    let claimed = match claimed {
        Some(tasks) => tasks.ok(),
        None => timeout(CLAIM_PATIENCE, claim).await.ok().and_then(Result::ok),
    };
    // What was decided is told in any case; whoever lacks the other answer asks for it.
    show_report(context, written, claimed)
}

/// Refuses completions whose outputs are not stored.
async fn confirm_outputs<D: Door>(app: &App<D>, items: &mut [Item]) {
    for item in items {
        if let Ok(order) = &item.order
            && let Err(problem) = confirm(app, order).await
        {
            item.order = Err(problem);
        }
    }
}

pub(in crate::http) async fn fail<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let items = read_failures(app, context, body)?;
    show_report(context, write(app, context, items, None).await?, None)
}

/// The worker of this caller under the name that it gave.
pub(super) fn read_worker(context: &Context, text: &str) -> Result<WorkerId, Stop> {
    let worker =
        parse_name("worker", text, WorkerId::parse).map_err(|error| problems::bad_field(&error))?;
    Ok(context.worker(worker)?)
}

/// One order per item; a bad item is refused alone.
fn gather<T>(
    context: &Context,
    tasks: Vec<Read<T>>,
    order: impl Fn(T) -> (String, Result<Order, FieldError>),
) -> Vec<Item> {
    let items = tasks.into_iter().enumerate().map(|(position, task)| match task {
        Ok(task) => {
            let (id, order) = order(task);
            Item { id, order: order.map_err(|error| bad_item(position, error)) }
        }
        Err(bad) => Item { id: bad.id, order: Err(bad.problem) },
    });
    let items: Vec<Item> = items.collect();
    context.subject.are(items.iter().map(|item| &item.id));
    items
}
