//! Whether a call keeps within the quota of its namespace, before anything is begun.

use std::time::Instant;

use ikada_api::state::limits::THEN_TOTAL_MAX;
use ikada_api::state::{
    BucketName, Command, Complete, Namespace, Order, RefusalCode, RequestId, SharedBytes,
    decode_then, is_owned,
};
use ikada_replica::call::{Answer, Consistency, Query, Request, RequestFate, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::tasks::Item;

/// Lets so many new tasks in, or tells when to come back.
pub(in crate::http) fn admit_tasks<D>(
    app: &App<D>,
    context: &Context,
    count: usize,
) -> Result<(), Stop> {
    let admitted = app.quotas.admit(&context.namespace, count as u64, Instant::now());
    admitted.map_err(|wait| problems::rate_exceeded(&context.namespace, wait).into())
}

/// Puts completions off by which workers bring more tasks than the quota lets in. Nothing is lost: they are sent again, and
/// the claim is kept meanwhile, and none waits for more than a few seconds.
pub(in crate::http) fn admit_follow_ups<D>(app: &App<D>, context: &Context, items: &mut [Item]) {
    for item in items {
        let Ok(Order { command: Command::Complete(complete), .. }) = &item.order else {
            continue;
        };
        let Complete { id, fence, then: Some(then), .. } = complete else {
            continue;
        };
        let (completion, count) = ((id, *fence), || count_then(then));
        let now = Instant::now();
        let admitted = app.quotas.admit_follow_ups(&context.namespace, completion, count, now);
        if let Err(wait) = admitted {
            item.order = Err(problems::follow_ups_wait(&context.namespace, wait));
        }
    }
}

/// Follow-ups with all below them: those come into being with completions that bring none of their own, and are judged
/// here or never. What cannot be read counts as none, and is refused by the state.
fn count_then(then: &SharedBytes) -> u64 {
    let (mut count, mut lists) = (0, vec![then.clone()]);
    while let Some(list) = lists.pop() {
        let tasks = decode_then(&list).unwrap_or_default();
        count += tasks.len();
        if count >= THEN_TOTAL_MAX {
            // More are refused by the state.
            return THEN_TOTAL_MAX as u64;
        }
        lists.extend(tasks.into_iter().filter_map(|task| task.options?.then));
    }
    count as u64
}

/// Lets so many bytes of an object in, unless the namespace has as many as it may. A resend of what is committed goes on:
/// it is answered as the first time.
pub(in crate::http) async fn admit_objects<D: Door>(
    app: &App<D>,
    context: &Context,
    (namespace, bucket): (&Namespace, &BucketName),
    bytes: u64,
) -> Result<(), Stop> {
    // Logs belong to work that was let in.
    if is_owned(bucket) || app.quotas.has_room(namespace, bytes) {
        return Ok(());
    }
    if let Some(request) = &context.key
        && is_committed(app, context, namespace, request).await?
    {
        return Ok(());
    }
    Err(problems::refusal(RefusalCode::NamespaceObjects).into())
}

/// Lets an object in that takes the place of so many bytes: those of the parts that it is made of. What adds nothing was
/// let in before.
pub(in crate::http) async fn admit_in_place<D: Door>(
    app: &App<D>,
    context: &Context,
    named: (&Namespace, &BucketName),
    bytes: u64,
    freed: u64,
) -> Result<(), Stop> {
    match bytes.saturating_sub(freed) {
        0 if freed > 0 => Ok(()),
        more => admit_objects(app, context, named, more).await,
    }
}

async fn is_committed<D: Door>(
    app: &App<D>,
    context: &Context,
    namespace: &Namespace,
    request: &RequestId,
) -> Result<bool, Stop> {
    let query = Query::Request(namespace.clone(), request.clone(), 0);
    let read = Request::Read(query, Consistency::Linearizable);
    match call(app, context, read, Routing::Forward).await? {
        Answer::View { view: View::Request(fate), .. } => {
            Ok(matches!(fate, RequestFate::Committed(_)))
        }
        _ => Err(mismatch("put object")),
    }
}
