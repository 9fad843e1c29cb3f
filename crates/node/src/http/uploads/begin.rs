//! `PUT /v1/uploads/{upload}`: begins an upload under an id that the caller chose, or tells what has arrived of it.

use bytes::Bytes;
use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::limits::CONTENT_TYPE_BYTES_MAX;
use ikada_api::state::{BucketName, ObjectName, PutCondition};
use ikada_api::v1::NewUpload;

use super::assemble::Unmeasured;
use super::keep::{PART_TYPE, UPLOADS_BUCKET, open, part_name, place};
use super::new_upload_of;
use super::show::describe;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_in_place;
use crate::http::objects::{Announced, check_bucket, commit};
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::objects::Upload;

pub(in crate::http) async fn begin<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let upload = new_upload_of(context)?;
    let wanted: NewUpload = read_document(context, body)?;
    let target = check_target(&wanted.bucket, &wanted.key)?;
    let content_type = wanted.content_type.unwrap_or_else(|| PART_TYPE.to_owned());
    if content_type.len() > CONTENT_TYPE_BYTES_MAX {
        let detail = format!("may have at most {CONTENT_TYPE_BYTES_MAX} bytes");
        return Err(problems::bad_parameter("content_type", detail).into());
    }
    context.subject.is(|| format!("{}/{}", target.0, target.1));
    // Before any part comes: the end would be too late for whoever sent them all.
    if wanted.size.is_some_and(|size| size > Upload::BYTES_MAX) {
        return Err(problems::object_too_large(Upload::BYTES_MAX).into());
    }
    let mut status = StatusCode::OK;
    let begun = match open(app, context, upload).await {
        Err(Stop::Problem(problem)) if problem.code == "upload_not_found" => {
            // What is written down for it counts as well while it lasts.
            let noted = (target.0.len() + 1 + target.1.len()) as u64;
            let size = wanted.size.map(|size| size.saturating_add(noted));
            judge(app, context, &target, size, 0).await?;
            note(app, context, upload, &target, &content_type).await?;
            status = StatusCode::CREATED;
            open(app, context, upload).await?
        }
        other => other?,
    };
    if (&begun.target, &begun.content_type) != (&target, &content_type) {
        return Err(problems::upload_differs(&begun.target.0, &begun.target.1).into());
    }
    if status == StatusCode::OK && wanted.size.is_some() {
        judge(app, context, &target, wanted.size, begun.bytes()).await?;
    }
    let mut reply = show_document(context, status, &describe(upload, &begun))?;
    // What it writes down is on a majority of the disks: no measure of what writes of a few bytes take.
    reply.extensions_mut().insert(Unmeasured);
    Ok(reply)
}

/// Whether there is room in the quota for what is still to come.
async fn judge<D: Door>(
    app: &App<D>,
    context: &Context,
    (bucket, _): &(String, String),
    size: Option<u64>,
    arrived: u64,
) -> Result<(), Stop> {
    let bucket = BucketName::parse(bucket).map_err(|_| problems::internal())?;
    let named = (&context.namespace, &bucket);
    admit_in_place(app, context, named, size.unwrap_or(0), arrived).await
}

/// Bucket and key of the object to be, if there may be such an object.
pub(super) fn check_target(bucket: &str, key: &str) -> Result<(String, String), Stop> {
    let bucket = parse_name("bucket", bucket, BucketName::parse);
    let bucket = bucket.map_err(|error| problems::bad_field(&error))?;
    let key = parse_name("key", key, ObjectName::parse);
    let key = key.map_err(|error| problems::bad_field(&error))?;
    check_bucket(&bucket)?;
    // Parts of parts would take each other for parts.
    match bucket.as_str() == UPLOADS_BUCKET {
        true => Err(problems::bucket_reserved().into()),
        false => Ok((bucket.to_string(), key.to_string())),
    }
}

/// Writes down what an upload is for. Two that begin it at once write the same, or one of them is told.
async fn note<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
    (bucket, key): &(String, String),
    content_type: &str,
) -> Result<(), Stop> {
    let mut bytes = Upload::begin(app.door.shelf());
    let pushed = bytes.push(Bytes::from(format!("{bucket}/{key}"))).await;
    pushed.map_err(|error| problems::not_spread(&error))?;
    let content = bytes.finish().await.map_err(|error| problems::not_spread(&error))?;
    let announced = Announced {
        content_type: content_type.to_owned(),
        condition: PutCondition::Absent,
        digest: None,
        length: 0,
    };
    let first = place(context, &part_name(upload, 0))?;
    match commit(app, context, first, announced, content).await {
        Err(Stop::Problem(problem)) if problem.code == "precondition_failed" => Ok(()),
        other => other.map(drop),
    }
}
