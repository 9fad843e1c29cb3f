//! `POST /v1/uploads/{upload}/finish`: the parts become the object, and go.

use ikada_api::state::{BucketName, Digest, ObjectName, ObjectVersion, PutCondition};
use ikada_api::v1::FinishUpload;

use super::assemble::{Unmeasured, assemble};
use super::begin::check_target;
use super::keep::{Begun, PARTS_MAX, forget, number_of, open};
use super::upload_of;
use crate::admission::Lane;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::{Announced, commit};
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
    let begun = open(app, context, upload).await?;
    let parts = all_parts(&begun, wanted.parts)?;
    // Whoever can write objects could have written its name.
    let (bucket, key) = check_target(&begun.target.0, &begun.target.1)?;
    let bucket = BucketName::parse(&bucket).map_err(|_| problems::internal())?;
    let name = ObjectName::parse(&key).map_err(|_| problems::internal())?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = assemble(app, &parts).await?;
    if let Some(text) = &wanted.digest
        && Digest::parse(text) != Some(content.digest)
    {
        return Err(problems::wrong_digest(&content.digest.to_string()).into());
    }
    let content_type = begun.content_type;
    let announced = Announced { content_type, condition, digest: None, length: 0 };
    let key = (context.namespace.clone(), bucket, name);
    let mut reply = commit(app, context, key, announced, content).await?;
    forget(app, context, &begun.parts, upload).await;
    reply.extensions_mut().insert(Unmeasured);
    Ok(reply)
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
