//! `POST /v1/uploads/{upload}/finish`: the parts become the object, and go.

use ikada_api::Problem;
use ikada_api::state::{
    BucketName, Digest, ObjectKey, ObjectName, ObjectVersion, PutCondition, RefusalCode,
};
use ikada_api::v1::FinishUpload;

use super::again::{version_of, written};
use super::assemble::{Unmeasured, assemble};
use super::begin::check_target;
use super::keep::{Begun, PARTS_MAX, number_of, open, try_forget};
use super::upload_of;
use crate::admission::Lane;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_in_place;
use crate::http::objects::{Announced, Made, commit_made, show_stored};
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn finish<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let upload = upload_of(context)?;
    let wanted: FinishUpload = read_document(context, body)?;
    let condition = condition(&wanted)?;
    let named = named(context, &wanted)?;
    let begun = match open(app, context, upload).await {
        Err(Stop::Problem(problem)) if problem.code == "upload_not_found" => {
            return answer_again(app, context, &wanted, named, *problem).await;
        }
        begun => begun?,
    };
    let parts = match all_parts(&begun, wanted.parts) {
        // The first finish is about to remove them, or was cut short.
        Err(Stop::Problem(problem)) if problem.code == "upload_incomplete" => {
            return answer_again(app, context, &wanted, named, *problem).await;
        }
        parts => parts?,
    };
    // Whoever can write objects could have written its name.
    let key = target(context, &begun.target.0, &begun.target.1)?;
    if named.is_some_and(|named| named != key) {
        return Err(problems::upload_differs(&begun.target.0, &begun.target.1).into());
    }
    let size = parts.iter().map(|part| part.size).fold(0, u64::saturating_add);
    let made = Made { upload, bytes: begun.bytes() };
    // Before all bytes are read for the digest.
    admit_in_place(app, context, (&key.0, &key.1), size, made.bytes).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = assemble(app, &parts, |_| ()).await?;
    if let Some(text) = &wanted.digest
        && Digest::parse(text) != Some(content.digest)
    {
        return Err(problems::wrong_digest(&content.digest.to_string()).into());
    }
    let content_type = begun.content_type;
    let announced = Announced { content_type, condition, digest: None, length: 0 };
    let mut reply = commit_made(app, context, key, announced, content, Some(made)).await?;
    try_forget(app, context, &begun.parts, upload).await;
    reply.extensions_mut().insert(Unmeasured);
    Ok(reply)
}

/// The full name of the object to be, if there may be such an object.
fn target(context: &Context, bucket: &str, key: &str) -> Result<ObjectKey, Stop> {
    let (bucket, key) = check_target(bucket, key)?;
    let bucket = BucketName::parse(&bucket).map_err(|_| problems::internal())?;
    let name = ObjectName::parse(&key).map_err(|_| problems::internal())?;
    Ok((context.namespace.clone(), bucket, name))
}

/// The object as the caller names it.
fn named(context: &Context, wanted: &FinishUpload) -> Result<Option<ObjectKey>, Stop> {
    match (&wanted.bucket, &wanted.key) {
        (Some(bucket), Some(key)) => target(context, bucket, key).map(Some),
        (None, None) => Ok(None),
        _ => Err(problems::bad_parameter("key", "bucket and key come together").into()),
    }
}

/// The answer to a finish that comes again when the parts are gone: what was committed under its key, if anything was.
async fn answer_again<D: Door>(
    app: &App<D>,
    context: &Context,
    wanted: &FinishUpload,
    named: Option<ObjectKey>,
    problem: Problem,
) -> Result<Reply, Stop> {
    let Some(request) = &context.key else { return Err(problem.into()) };
    let Some(done) = written(app, context, request).await? else { return Err(problem.into()) };
    let found = match named {
        Some(key) => version_of(app, context, key, done.version).await?,
        None => None,
    };
    let Some((object, version, seen)) = found else {
        return Err(problems::upload_finished(done.version).into());
    };
    if wanted.digest.as_ref().is_some_and(|digest| *digest != version.digest.to_string()) {
        return Err(problems::refusal(RefusalCode::IdempotencyConflict).into());
    }
    context.subject.is(|| format!("{}/{}", object.bucket, object.name));
    show_stored(context, (&object, &version), done.fresh, seen.positions())
}

/// What must be true of the object for the upload to count.
fn condition(wanted: &FinishUpload) -> Result<PutCondition, Stop> {
    let digest = match &wanted.if_match {
        None => return Ok(if wanted.if_absent { PutCondition::Absent } else { PutCondition::Any }),
        Some(text) => Digest::parse(text),
    };
    match digest.filter(|_| !wanted.if_absent) {
        Some(digest) => Ok(PutCondition::Match(digest)),
        None => {
            let rule = "must be a BLAKE3 digest: 64 hex digits; and not together with if_absent";
            Err(problems::bad_parameter("if_match", rule).into())
        }
    }
}

/// The newest versions of exactly the parts from 1 to a number.
fn all_parts(begun: &Begun, count: u32) -> Result<Vec<ObjectVersion>, Stop> {
    if !(1..=PARTS_MAX as u32).contains(&count) {
        let rule = format!("must be 1 to {PARTS_MAX}");
        return Err(problems::bad_parameter("parts", rule).into());
    }
    let mut next = 1;
    let mut found = Vec::with_capacity(begun.parts.len());
    for part in &begun.parts {
        let version = part.newest().filter(|_| number_of(part) == Some(next) && next <= count);
        let Some(version) = version else { break };
        found.push(version.clone());
        next += 1;
    }
    match next == count + 1 && found.len() == begun.parts.len() {
        true => Ok(found),
        false => Err(problems::upload_incomplete(next, count, begun.parts.len()).into()),
    }
}
