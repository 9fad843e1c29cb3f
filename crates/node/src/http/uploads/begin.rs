//! `PUT /v1/uploads/{upload}`: begins an upload under an id that the caller chose, or tells what has arrived of it.

use bytes::Bytes;
use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::limits::CONTENT_TYPE_BYTES_MAX;
use ikada_api::state::{BucketName, ObjectName, PutCondition};
use ikada_api::v1::NewUpload;

use super::keep::{PART_TYPE, UPLOADS_BUCKET, open, part_name, place, sweep};
use super::show::describe;
use super::upload_of;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::{Announced, check_bucket, commit};
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::objects::Upload;

pub(in crate::http) async fn begin<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let upload = upload_of(context)?;
    let wanted: NewUpload = read_document(context, body)?;
    let target = check_target(&wanted.bucket, &wanted.key)?;
    let content_type = wanted.content_type.unwrap_or_else(|| PART_TYPE.to_owned());
    if content_type.len() > CONTENT_TYPE_BYTES_MAX {
        let detail = format!("may have at most {CONTENT_TYPE_BYTES_MAX} bytes");
        return Err(problems::bad_parameter("content_type", detail).into());
    }
    let mut status = StatusCode::OK;
    let begun = match open(app, context, upload).await {
        Err(Stop::Problem(problem)) if problem.code == "upload_not_found" => {
            sweep(app, context).await;
            note(app, context, upload, &target, &content_type).await?;
            status = StatusCode::CREATED;
            open(app, context, upload).await?
        }
        other => other?,
    };
    if (&begun.target, &begun.content_type) != (&target, &content_type) {
        return Err(problems::upload_differs(&begun.target.0, &begun.target.1).into());
    }
    show_document(context, status, &describe(upload, &begun))
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
