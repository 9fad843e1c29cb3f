//! `GET /v1/tasks/{id}/logs` as text: what one attempt has said so far.

use hyper::http::request::Parts;
use ikada_api::state::{BUCKET_LOGS, BucketName, TaskId};
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::download;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::read;

/// Most attempts of one task that are looked through.
const ATTEMPTS_MAX: usize = 1_000;

pub(super) async fn read_task<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    id: &TaskId,
    attempt: Option<u16>,
) -> Result<Reply, Stop> {
    let attempt = match attempt {
        Some(attempt) => attempt,
        None => newest(app, context, id).await?,
    };
    let place = vec![BUCKET_LOGS.to_owned(), format!("{id}/{attempt}")];
    download(app, &context.about(place), parts).await
}

/// The newest attempt that has said anything.
async fn newest<D: Door>(app: &App<D>, context: &Context, id: &TaskId) -> Result<u16, Stop> {
    let bucket = BucketName::parse(BUCKET_LOGS).map_err(|_| mismatch("logs"))?;
    let (namespace, prefix) = (context.namespace.clone(), format!("{id}/"));
    let (after, limit) = (None, ATTEMPTS_MAX);
    let query = Query::Objects { namespace, bucket, prefix: prefix.clone(), after, limit };
    let seen = read(app, context, query).await?;
    let View::Objects(page) = &seen.view else {
        return Err(mismatch("logs"));
    };
    let number = |name: &str| name.strip_prefix(&prefix)?.parse::<u16>().ok();
    let newest = page.objects.iter().filter_map(|object| number(object.name.as_str())).max();
    newest.ok_or_else(|| problems::not_found("log_not_found", "log of task", id.as_str()).into())
}
