//! How uploads in parts are kept, for both doors: as objects of a bucket of their own, `<upload>/<number>`. Number 0 holds
//! the name of the object to be, with its type; the others are the parts.
//!
//! Leaves out: bytes (`assemble.rs`).

use std::sync::Arc;

use ikada_api::state::{
    BucketName, Command, DeleteObject, Object, ObjectKey, ObjectName, Order, PutCondition,
    RequestKey,
};
use ikada_replica::call::{Answer, Outcome, Query, Request, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::objects::{Wish, fold};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::read;
use crate::watch::wall_ms;

/// Where parts are kept.
pub(in crate::http) const UPLOADS_BUCKET: &str = "s3-uploads";
/// Most parts of one upload, as S3 has it.
pub(in crate::http) const PARTS_MAX: usize = 10_000;
/// What a part is.
pub(in crate::http) const PART_TYPE: &str = "application/octet-stream";
/// Parts read at a time.
const PAGE: usize = 1_000;
/// Parts removed by one write.
const FORGET_MAX: usize = 500;
/// How long an upload may take.
const LIFE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Uploads that one sweep looks at.
const SWEEP_MAX: usize = 8;

/// An upload that was begun.
pub(in crate::http) struct Begun {
    /// Bucket and key of the object to be.
    pub(in crate::http) target: (String, String),
    /// What it will be.
    pub(in crate::http) content_type: String,
    /// Log time at which it was begun.
    pub(in crate::http) begun_ms: u64,
    /// The parts that have arrived, in order.
    pub(in crate::http) parts: Vec<Arc<Object>>,
}

/// The full name of something in the bucket of uploads.
pub(in crate::http) fn place(context: &Context, name: &str) -> Result<ObjectKey, Stop> {
    let bucket = BucketName::parse(UPLOADS_BUCKET).map_err(|_| problems::internal())?;
    let name = ObjectName::parse(name).map_err(|_| not_found(name))?;
    Ok((context.namespace.clone(), bucket, name))
}

/// The name of a part; number 0 is what an upload begins with.
pub(in crate::http) fn part_name(upload: &str, number: usize) -> String {
    format!("{upload}/{number:05}")
}

/// The number of a part.
pub(in crate::http) fn number_of(part: &Object) -> Option<u32> {
    part.name.as_str().rsplit('/').next()?.parse().ok()
}

fn not_found(upload: &str) -> Stop {
    problems::not_found("upload_not_found", "upload", upload).into()
}

/// Objects whose names begin so, in order.
async fn stored<D: Door>(
    app: &App<D>,
    context: &Context,
    prefix: &str,
) -> Result<Vec<Arc<Object>>, Stop> {
    let (mut found, mut after) = (Vec::new(), None);
    while found.len() <= PARTS_MAX {
        let (namespace, bucket, _) = place(context, "x")?;
        let prefix = prefix.to_owned();
        let query = Query::Objects { namespace, bucket, prefix, after, limit: PAGE };
        let seen = read(app, context, query).await?;
        let View::Objects(page) = seen.view else { return Err(mismatch("list parts")) };
        found.extend(page.objects);
        match page.next {
            Some(next) => after = Some(next.to_string()),
            None => break,
        }
    }
    Ok(found)
}

/// An upload with its parts.
pub(in crate::http) async fn open<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
) -> Result<Begun, Stop> {
    let mut parts = stored(app, context, &format!("{upload}/")).await?;
    let is_first = |object: &&Arc<Object>| object.name.as_str() == part_name(upload, 0);
    let begun = read_first(app, upload, parts.first().filter(is_first)).await?;
    parts.remove(0);
    Ok(Begun { parts, ..begun })
}

/// An upload without its parts.
pub(in crate::http) async fn look<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
) -> Result<Begun, Stop> {
    let seen = read(app, context, Query::Object(place(context, &part_name(upload, 0))?)).await?;
    let View::Object(first) = seen.view else { return Err(mismatch("upload")) };
    read_first(app, upload, first.as_ref()).await
}

/// What an upload begins with.
async fn read_first<D: Door>(
    app: &App<D>,
    upload: &str,
    first: Option<&Arc<Object>>,
) -> Result<Begun, Stop> {
    let first = first.and_then(|object| object.newest()).ok_or_else(|| not_found(upload))?;
    let digest = first.chunks.first().ok_or_else(|| not_found(upload))?;
    let target = app.door.shelf().fetch(*digest, true).await;
    let target = target.map_err(|error| problems::piece_missing(&error))?;
    let target = std::str::from_utf8(&target).ok().and_then(|text| text.split_once('/'));
    let (bucket, key) = target.ok_or_else(|| not_found(upload))?;
    Ok(Begun {
        target: (bucket.to_owned(), key.to_owned()),
        content_type: first.content_type.clone(),
        begun_ms: first.created_ms,
        parts: Vec::new(),
    })
}

/// Removes an upload. What cannot be removed now is swept up later.
pub(in crate::http) async fn forget<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &[Arc<Object>],
    upload: &str,
) {
    let names: Vec<ObjectName> = parts.iter().map(|part| part.name.clone()).collect();
    for some in names.chunks(FORGET_MAX) {
        remove(app, context, some).await;
    }
    // The first last: it says that there is an upload.
    if let Ok((_, _, first)) = place(context, &part_name(upload, 0)) {
        remove(app, context, &[first]).await;
    }
}

async fn remove<D: Door>(app: &App<D>, context: &Context, names: &[ObjectName]) {
    let Ok((namespace, bucket, _)) = place(context, "x") else { return };
    let request = app.door.fresh_request_id();
    let order = |(name, item): (&ObjectName, u32)| {
        let (bucket, name) = (bucket.clone(), name.clone());
        let delete = DeleteObject { bucket, name, version: None, condition: PutCondition::Any };
        Order {
            namespace: namespace.clone(),
            request: Some(RequestKey { id: request.clone(), item }),
            command: Command::DeleteObject(delete),
        }
    };
    let orders = names.iter().zip(0..).map(order).collect();
    let written = call(app, context, Request::Write(orders), Routing::Forward).await;
    let is_done = |outcome: &Outcome| matches!(outcome, Outcome::Reply { .. });
    if !matches!(written, Ok(Answer::Written(outcomes)) if outcomes.iter().all(is_done)) {
        tracing::debug!("parts of an upload stay until they are swept up");
    }
}

/// Removes uploads that nobody ended. It looks at a few, from a place of chance on, so that every one is met in the end,
/// however many are under way.
pub(in crate::http) async fn sweep<D: Door>(app: &App<D>, context: &Context) {
    let mut prefixes = Vec::new();
    for after in [Some(format!("{:016x}", app.draw())), None] {
        let Ok((_, bucket, _)) = place(context, "x") else { return };
        let max = SWEEP_MAX.saturating_sub(prefixes.len());
        let wish = Wish { bucket, prefix: "", delimiter: Some("/"), max, after };
        let Ok(found) = fold(app, context, &wish).await else { return };
        prefixes.extend(found.prefixes);
    }
    prefixes.sort_unstable();
    prefixes.dedup();
    for prefix in prefixes {
        if !is_over(app, context, &prefix).await {
            continue;
        }
        let Ok(mut parts) = stored(app, context, &prefix).await else { continue };
        parts.retain(|part| !part.name.as_str().ends_with("/00000"));
        forget(app, context, &parts, prefix.trim_end_matches('/')).await;
    }
}

/// Whether the time of an upload is over, by its beginning; without one, by a part that came after its end.
async fn is_over<D: Door>(app: &App<D>, context: &Context, prefix: &str) -> bool {
    let Ok((namespace, bucket, _)) = place(context, "x") else { return false };
    let prefix = prefix.to_owned();
    let query = Query::Objects { namespace, bucket, prefix, after: None, limit: 1 };
    let Ok(seen) = read(app, context, query).await else { return false };
    let View::Objects(page) = seen.view else { return false };
    let first = page.objects.first().and_then(|part| part.newest());
    let over = wall_ms().saturating_sub(LIFE_MS);
    first.is_some_and(|version| version.created_ms < over)
}
