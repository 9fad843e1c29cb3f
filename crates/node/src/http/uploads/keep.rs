//! How uploads in parts are kept, for both doors: as objects of a bucket of their own, `<upload>/<number>`. Number 0 holds
//! the name of the object to be, with its type; the others are the parts.
//!
//! Leaves out: bytes (`assemble.rs`), and the end of what nobody ends (`sweep.rs`).

use std::sync::Arc;

use ikada_api::state::{
    BUCKET_UPLOADS, BucketName, Command, DeleteObject, Object, ObjectKey, ObjectName, Order,
    PutCondition, RefusalCode, Reply, RequestKey,
};
use ikada_replica::call::{Answer, Outcome, Query, Request, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::read;

/// Where parts are kept.
pub(in crate::http) const UPLOADS_BUCKET: &str = BUCKET_UPLOADS;
/// Most parts of one upload, as S3 has it.
pub(in crate::http) const PARTS_MAX: usize = 10_000;
/// What a part is.
pub(in crate::http) const PART_TYPE: &str = "application/octet-stream";
/// Parts read at a time.
const PAGE: usize = 1_000;
/// Parts removed by one write.
const FORGET_MAX: usize = 500;

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
pub(super) async fn stored<D: Door>(
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
    let begun = read_first(app, context, upload, parts.first().filter(is_first)).await?;
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
    read_first(app, context, upload, first.as_ref()).await
}

/// What an upload begins with.
async fn read_first<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
    first: Option<&Arc<Object>>,
) -> Result<Begun, Stop> {
    let first = first.and_then(|object| object.newest()).ok_or_else(|| not_found(upload))?;
    let digest = first.chunks.first().ok_or_else(|| not_found(upload))?;
    let target = app.door.shelf().fetch(*digest, true).await;
    let target = target.map_err(|error| problems::piece_missing(&error))?;
    let target = std::str::from_utf8(&target).ok().and_then(|text| text.split_once('/'));
    let (bucket, key) = target.ok_or_else(|| not_found(upload))?;
    context.subject.is(|| format!("{bucket}/{key}"));
    Ok(Begun {
        target: (bucket.to_owned(), key.to_owned()),
        content_type: first.content_type.clone(),
        begun_ms: first.created_ms,
        parts: Vec::new(),
    })
}

impl Begun {
    /// What its parts have of the namespace's quota.
    pub(in crate::http) fn bytes(&self) -> u64 {
        bytes_of(&self.parts)
    }
}

/// What parts have of the namespace's quota: a part that was replaced counts as often as it is kept.
pub(in crate::http) fn bytes_of(parts: &[Arc<Object>]) -> u64 {
    let versions = parts.iter().flat_map(|part| part.versions.iter());
    versions.map(|version| version.size).fold(0, u64::saturating_add)
}

/// Removes an upload, or tells why it is still there. What is left is swept up later.
pub(in crate::http) async fn forget<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &[Arc<Object>],
    upload: &str,
) -> Result<(), Stop> {
    let names: Vec<ObjectName> = parts.iter().map(|part| part.name.clone()).collect();
    for some in names.chunks(FORGET_MAX) {
        remove(app, context, some).await?;
    }
    // The first last: it says that there is an upload.
    let (_, _, first) = place(context, &part_name(upload, 0))?;
    remove(app, context, &[first]).await
}

/// The same where nobody waits for it.
pub(in crate::http) async fn try_forget<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &[Arc<Object>],
    upload: &str,
) {
    if let Err(Stop::Problem(problem)) = forget(app, context, parts, upload).await {
        tracing::debug!(upload, %problem, "parts of an upload stay until they are swept up");
    }
}

/// Removes one part.
pub(super) async fn drop_part<D: Door>(
    app: &App<D>,
    context: &Context,
    name: &str,
) -> Result<(), Stop> {
    let (_, _, name) = place(context, name)?;
    remove(app, context, &[name]).await
}

async fn remove<D: Door>(
    app: &App<D>,
    context: &Context,
    names: &[ObjectName],
) -> Result<(), Stop> {
    let (namespace, bucket, _) = place(context, "x")?;
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
    let written = call(app, context, Request::Write(orders), Routing::Forward).await?;
    let Answer::Written(outcomes) = written else { return Err(mismatch("end upload")) };
    for outcome in outcomes {
        match outcome {
            // Somebody else was faster.
            Outcome::Reply {
                reply: Reply::Refused { code: RefusalCode::ObjectNotFound }, ..
            } => {}
            Outcome::Reply { reply: Reply::Refused { code }, .. } => {
                return Err(problems::refusal(code).into());
            }
            Outcome::Reply { .. } => {}
            Outcome::Unavailable(reason) => return Err(problems::unavailable(&reason).into()),
            Outcome::Unknown => return Err(problems::unknown(None).into()),
        }
    }
    Ok(())
}
