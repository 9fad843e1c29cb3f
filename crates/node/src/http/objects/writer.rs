//! Who may write the log of an attempt: the caller that runs it, or ran it (X5).
//!
//! A log is shown as what a task said, so a token that may store objects must not be enough to put words into its mouth.
//! Callers without tokens are told apart by nothing, here as everywhere.
//!
//! Leaves out: whether there is such a task and attempt, which apply judges.

use ikada_api::state::{BUCKET_LOGS, ObjectKey, RefusalCode, TaskId};
use ikada_replica::call::{Consistency, Query, Request, View};

use crate::auth::Principal;
use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::call;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::Seen;

/// Refuses logs of attempts that are none of this caller's.
pub(super) async fn check_writer<D: Door>(
    app: &App<D>,
    context: &Context,
    (namespace, bucket, name): &ObjectKey,
) -> Result<(), Stop> {
    if bucket.as_str() != BUCKET_LOGS || context.principal.token.is_none() {
        return Ok(());
    }
    let task = name.as_str().split_once('/').and_then(|(task, _)| TaskId::parse(task).ok());
    let Some(task) = task else { return Ok(()) };
    // This node may not have heard of the claim yet.
    for consistency in [Consistency::Stale, Consistency::Linearizable] {
        let query = Query::Task(namespace.clone(), task.clone());
        let answer = call(app, context, Request::Read(query, consistency), context.routing).await?;
        if let Some(View::Task(Some(task))) = Seen::of(answer).map(|seen| seen.view)
            && task
                .attempts
                .iter()
                .any(|attempt| is_of(&context.principal, attempt.worker.as_str()))
        {
            return Ok(());
        }
    }
    Err(problems::refusal(RefusalCode::NotOwner).into())
}

/// Whether a worker is one of this caller's.
fn is_of(principal: &Principal, worker: &str) -> bool {
    worker.split_once('.').is_some_and(|(name, _)| name == principal.name)
}
