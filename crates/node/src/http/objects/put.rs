//! `PUT /v1/objects/{bucket}/{key}`: takes bytes in as they come and commits the name once a majority has them.
//!
//! An upload that breaks off, is too short, too long or not what it was said to be leaves nothing that anyone can see.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::http::request::Parts;
use ikada_api::state::limits::CONTENT_TYPE_BYTES_MAX;
use ikada_api::state::{
    Command, Digest, Lsn, Object, ObjectKey, ObjectName, ObjectVersion, Order, PutCondition,
    PutObject, Reply as StateReply, RequestId, RequestKey, ShardId,
};
use ikada_api::v1::{OBJECT_DIGEST_HEADER, ObjectInfo, print_positions};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};

use super::name::{check_bucket, object_key};
use super::precondition::condition;
use super::show::{add_headers, describe};
use super::writer::check_writer;
use crate::admission::Lane;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::namespaces::{admit_in_place, admit_objects};
use crate::http::pace::Pace;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::standing::broken_body;
use crate::objects::{Content, Upload};

/// How long a look at this node's own copy may take when the object is there already.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);
/// What an object is when its writer does not say.
const TYPE_DEFAULT: &str = "application/octet-stream";

/// What the headers say of the bytes to come.
pub(in crate::http) struct Announced {
    pub(in crate::http) content_type: String,
    pub(in crate::http) condition: PutCondition,
    pub(in crate::http) digest: Option<Digest>,
    /// How many bytes will come; 0 if that is not said.
    pub(in crate::http) length: u64,
}

pub(super) async fn put<D, B>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    body: B,
) -> Result<Reply, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let key = object_key(context)?;
    check_bucket(&key.1)?;
    let announced = read_headers(parts)?;
    admit_objects(app, context, (&key.0, &key.1), announced.length).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = take_in(app, body).await?;
    if announced.digest.is_some_and(|digest| digest != content.digest) {
        return Err(problems::wrong_digest(&content.digest.to_string()).into());
    }
    commit(app, context, key, announced, content).await
}

pub(in crate::http) fn read_headers(parts: &Parts) -> Result<Announced, Stop> {
    let text = |name: &str| match parts.headers.get(name) {
        None => Ok(None),
        Some(value) => {
            value.to_str().map(Some).map_err(|_| problems::bad_parameter(name, "is not plain text"))
        }
    };
    let length = text(CONTENT_LENGTH.as_str())?.and_then(|length| length.parse().ok());
    let length = length.unwrap_or(0);
    if length > Upload::BYTES_MAX {
        return Err(problems::object_too_large(Upload::BYTES_MAX).into());
    }
    let content_type = text(CONTENT_TYPE.as_str())?.unwrap_or(TYPE_DEFAULT);
    if content_type.len() > CONTENT_TYPE_BYTES_MAX {
        let detail = format!("may have at most {CONTENT_TYPE_BYTES_MAX} bytes");
        return Err(problems::bad_parameter("content-type", detail).into());
    }
    let digest = match text(OBJECT_DIGEST_HEADER)? {
        None => None,
        Some(text) => {
            let rule = "must be a BLAKE3 digest: 64 hex digits in lower case";
            let digest = Digest::parse(text.trim());
            Some(digest.ok_or_else(|| problems::bad_parameter(OBJECT_DIGEST_HEADER, rule))?)
        }
    };
    let condition = condition(&parts.headers)?;
    Ok(Announced { content_type: content_type.to_owned(), condition, digest, length })
}

/// Takes all bytes in. They must keep coming; the whole may take as long as it takes.
pub(in crate::http) async fn take_in<D, B>(app: &App<D>, body: B) -> Result<Content, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = Box::pin(body);
    let mut upload = Upload::begin(app.door.shelf());
    let mut pace = Pace::new(app.limits.body_timeout);
    loop {
        let frame = match pace.frame(body.as_mut()).await {
            Err(_) => return Err(problems::body_incomplete().into()),
            Ok(Some(Err(error))) => return Err(broken_body(error).into()),
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(bytes) = frame.into_data() {
            if upload.size() + bytes.len() as u64 > Upload::BYTES_MAX {
                return Err(problems::object_too_large(Upload::BYTES_MAX).into());
            }
            upload.push(bytes).await.map_err(|error| problems::not_spread(&error))?;
        }
    }
    upload.finish().await.map_err(|error| problems::not_spread(&error).into())
}

/// The upload in parts that an object is made of.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Made<'a> {
    pub(in crate::http) upload: &'a str,
    /// What its parts have of the namespace's quota: they go once the object is there.
    pub(in crate::http) bytes: u64,
}

/// Gives stored bytes their name.
pub(in crate::http) async fn commit<D: Door>(
    app: &App<D>,
    context: &Context,
    key: ObjectKey,
    announced: Announced,
    content: Content,
) -> Result<Reply, Stop> {
    commit_made(app, context, key, announced, content, None).await
}

/// Gives stored bytes their name; those of an upload in parts are in the quota already.
pub(in crate::http) async fn commit_made<D: Door>(
    app: &App<D>,
    context: &Context,
    (namespace, bucket, name): ObjectKey,
    announced: Announced,
    content: Content,
    made: Option<Made<'_>>,
) -> Result<Reply, Stop> {
    check_writer(app, context, &(namespace.clone(), bucket.clone(), name.clone())).await?;
    let request = context.key.clone().unwrap_or_else(|| app.door.fresh_request_id());
    let Content { size, digest, chunks } = content;
    let freed = made.map_or(0, |made| made.bytes);
    admit_in_place(app, context, (&namespace, &bucket), size, freed).await?;
    // Nodes of older versions do not know it, and where nothing is bounded nobody asks.
    let made = made.filter(|_| app.quotas.bounds_objects(&namespace));
    let upload = made.and_then(|made| ObjectName::parse(made.upload).ok());
    let put = PutObject {
        bucket: bucket.clone(),
        name: name.clone(),
        size,
        content_type: announced.content_type.clone(),
        digest,
        chunks: chunks.clone(),
        condition: announced.condition,
        upload,
    };
    let order = Order {
        namespace: namespace.clone(),
        request: Some(RequestKey { id: request.clone(), item: 0 }),
        command: Command::PutObject(put),
    };
    let (reply, position) = write_put(app, context, order, &request).await?;
    let StateReply::ObjectPut { version, fresh } = reply else {
        return Err(mismatch("put object"));
    };
    if fresh {
        app.quotas.stored(&namespace, size.saturating_sub(freed));
    }
    // The bytes have travelled already, so what is told is put together here instead of being read again.
    let key = (namespace.clone(), bucket.clone(), name.clone());
    let created_ms = written_ms(app, key, version).await;
    let (content_type, address) = (announced.content_type, None);
    let stored = ObjectVersion { version, size, content_type, digest, chunks, created_ms, address };
    let object = Object { namespace, bucket, name, versions: Vec::new() };
    show_stored(context, (&object, &stored), fresh, &[position])
}

/// When a version was written, by the log: as this node knows it already, or else about now.
async fn written_ms<D: Door>(app: &App<D>, key: ObjectKey, version: u64) -> u64 {
    let look = Request::Read(Query::Object(key), Consistency::Stale);
    let seen = app.door.call(look, LOOK_PATIENCE, Routing::Forward).await;
    if let Answer::View { view: View::Object(Some(object)), .. } = seen
        && let Some(written) = object.version(Some(version))
    {
        return written.created_ms;
    }
    app.log_now_ms().await
}

/// The answer to whoever wrote a version.
pub(in crate::http) fn show_stored(
    context: &Context,
    (object, stored): (&Object, &ObjectVersion),
    fresh: bool,
    positions: &[(ShardId, Lsn)],
) -> Result<Reply, Stop> {
    let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
    let lsn = Some(print_positions(positions.iter().copied()));
    let mut response =
        show_document(context, status, &ObjectInfo { lsn, ..describe(object, stored) })?;
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    add_headers(response.headers_mut(), stored);
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    add_positions(&mut response, positions);
    Ok(response)
}

/// Writes an object. During an upgrade the order goes out as the older nodes know it: then its parts count once more.
async fn write_put<D: Door>(
    app: &App<D>,
    context: &Context,
    order: Order,
    request: &RequestId,
) -> Result<(StateReply, (ShardId, Lsn)), Stop> {
    let mut older = order.clone();
    let is_newer = match &mut older.command {
        Command::PutObject(put) => put.upload.take().is_some(),
        _ => false,
    };
    match write_one(app, context, order, request).await {
        Err(Stop::Problem(problem)) if is_newer && problem.code == "level_too_low" => {
            write_one(app, context, older, request).await
        }
        written => written,
    }
}

/// Writes one order; a refusal, or an outcome that is not known, becomes the answer to the request.
pub(in crate::http) async fn write_one<D: Door>(
    app: &App<D>,
    context: &Context,
    order: Order,
    request: &RequestId,
) -> Result<(StateReply, (ShardId, Lsn)), Stop> {
    let write = Request::Write(vec![order]);
    let Answer::Written(outcomes) = call(app, context, write, Routing::Forward).await? else {
        return Err(mismatch("write object"));
    };
    match outcomes.into_iter().next() {
        Some(Outcome::Reply { reply: StateReply::Refused { code }, .. }) => {
            Err(problems::refusal(code).into())
        }
        Some(Outcome::Reply { reply, shard, lsn }) => Ok((reply, (shard, lsn))),
        Some(Outcome::Unavailable(reason)) => Err(problems::unavailable(&reason).into()),
        Some(Outcome::Unknown) | None => Err(problems::unknown(Some(request.as_str())).into()),
    }
}
