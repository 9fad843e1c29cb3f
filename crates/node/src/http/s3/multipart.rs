//! Uploads in parts, in the words of S3. How parts are kept, and how they become an object, is in `http/uploads`.
//!
//! Promise: an end whose answer got lost may be asked for again, and is answered as the first time.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::state::{Digest, Object, ObjectKey, ObjectVersion, PutCondition, RequestId};

use super::body::Reader;
use super::buckets::page;
use super::fault::Fault;
use super::object::{announced, newest, object_key, store};
use super::route::Call;
use super::sums::Sums;
use crate::admission::Lane;
use crate::http::answer::{Reply, text};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_in_place;
use crate::http::objects::{Announced, Made, commit, commit_made, iso_date};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::uploads::{
    PART_TYPE, PARTS_MAX, Unmeasured, assemble, bytes_of, forget, number_of, open as find,
    part_name, place, try_forget, version_of, written,
};
use crate::objects::Upload;
use ikada_api::s3::xml::{element, elements, first};

/// The header by which AWS clients say that a call is sent again.
const SAME_CALL: &str = "amz-sdk-invocation-id";

/// The id of an upload as the call names it: a word of ours.
fn upload_of(call: &Call) -> Result<&str, Fault> {
    let id = call.query("uploadId").unwrap_or("");
    let ours = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if ours { Ok(id) } else { Err(Fault::no_upload()) }
}

/// The call's object in an answer.
fn names_of(call: &Call) -> String {
    [element("Bucket", &call.bucket), element("Key", &call.key)].concat()
}

/// The parts of an upload into the call's object, and the type that was announced for it.
async fn open<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
) -> Result<(String, Vec<Arc<Object>>), Fault> {
    let begun = find(app, context, upload).await?;
    let (bucket, key) = &begun.target;
    match [bucket.as_str(), key.as_str()] == [context.names[0].as_str(), context.names[1].as_str()]
    {
        true => Ok((begun.content_type, begun.parts)),
        false => Err(Fault::no_upload()),
    }
}

pub(super) async fn begin<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: &Call,
) -> Result<Reply, Fault> {
    object_key(context)?;
    let upload = crate::auth::draw_word().map_err(|_| problems::internal())?;
    let upload = format!("{upload}{:04x}", app.draw() as u16);
    let mut announced = announced(parts)?;
    announced.condition = PutCondition::Absent;
    let mut bytes = Upload::begin(app.door.shelf());
    let target = Bytes::from(context.names.join("/"));
    bytes.push(target).await.map_err(|error| problems::not_spread(&error))?;
    let content = bytes.finish().await.map_err(|error| problems::not_spread(&error))?;
    commit(app, context, place(context, &part_name(&upload, 0))?, announced, content).await?;
    let names = names_of(call);
    let id = element("UploadId", &upload);
    let body =
        format!("<InitiateMultipartUploadResult>{names}{id}</InitiateMultipartUploadResult>");
    let mut reply = page(&body);
    // A few bytes on a majority of the disks: no measure of what a piece takes.
    reply.extensions_mut().insert(Unmeasured);
    Ok(reply)
}

pub(super) async fn put_part<D, B>(
    app: &App<D>,
    context: &Context,
    call: &Call,
    reader: Reader<B>,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let key = part_place(app, context, call).await?;
    let announced = Announced {
        content_type: PART_TYPE.to_owned(),
        condition: PutCondition::Any,
        digest: None,
        length: 0,
    };
    store(app, context, key, announced, reader).await
}

/// Where the part goes that a call names, of an upload that was begun.
pub(super) async fn part_place<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<ObjectKey, Fault> {
    let upload = upload_of(call)?;
    let number = call.query("partNumber").and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=PARTS_MAX).contains(number));
    let number = number.ok_or_else(|| Fault::argument("partNumber must be 1 to 10000"))?;
    newest(app, context, place(context, &part_name(upload, 0))?)
        .await
        .map_err(|fault| if fault.code == "NoSuchKey" { Fault::no_upload() } else { fault })?;
    Ok(place(context, &part_name(upload, number))?)
}

pub(super) async fn complete<D, B>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: &Call,
    reader: Reader<B>,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (key, upload) = (object_key(context)?, upload_of(call)?);
    let wanted = read_parts(&reader.document().await?)?;
    let announced = announced(parts)?;
    let request = request_of(context, upload, announced.condition, parts);
    let (content_type, stored, versions) = match chosen(app, context, upload, wanted).await {
        Err(fault) if matches!(fault.code, "NoSuchUpload" | "InvalidPart") => {
            return complete_again(app, context, call, key, request, fault).await;
        }
        chosen => chosen?,
    };
    let made = Made { upload, bytes: bytes_of(&stored) };
    let mut sums = Sums::of_object(&parts.headers)?;
    let size = versions.iter().map(|version| version.size).fold(0, u64::saturating_add);
    check_size(parts, size)?;
    admit_in_place(app, context, (&key.0, &key.1), size, made.bytes).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = assemble(app, &versions, |bytes| sums.add(bytes)).await?;
    sums.check()?;
    let digest = content.digest;
    let announced = Announced { content_type, ..announced };
    let mut keyed = context.clone();
    keyed.key = request;
    commit_made(app, &keyed, key, announced, content, Some(made)).await?;
    try_forget(app, context, &stored, upload).await;
    Ok(completed(call, &digest))
}

/// The size that the caller says the object has.
fn check_size(parts: &Parts, size: u64) -> Result<(), Fault> {
    let Some(told) = parts.headers.get("x-amz-mp-object-size") else { return Ok(()) };
    match told.to_str().ok().and_then(|told| told.parse().ok()) == Some(size) {
        true => Ok(()),
        false => {
            let detail = format!("the parts have {size} bytes, not what x-amz-mp-object-size says");
            Err(Fault::new(400, "InvalidRequest", detail))
        }
    }
}

fn completed(call: &Call, digest: &Digest) -> Reply {
    let names = names_of(call);
    let tag = element("ETag", &format!("\"{digest}\""));
    let mut reply = page(&format!(
        "<CompleteMultipartUploadResult>{names}{tag}</CompleteMultipartUploadResult>"
    ));
    reply.extensions_mut().insert(Unmeasured);
    reply
}

/// What an upload is to be, all its parts, and those that the caller chose.
async fn chosen<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
    wanted: Vec<(usize, String)>,
) -> Result<(String, Vec<Arc<Object>>, Vec<ObjectVersion>), Fault> {
    let (content_type, stored) = open(app, context, upload).await?;
    let mut versions = Vec::with_capacity(wanted.len());
    for (number, tag) in wanted {
        let name = part_name(upload, number);
        let part = stored.iter().find(|part| part.name.as_str() == name);
        let version =
            part.and_then(|part| part.newest()).filter(|version| version.digest.to_string() == tag);
        let version = version.ok_or_else(|| {
            let detail = format!("part {number} was not uploaded with this ETag");
            Fault::new(400, "InvalidPart", detail)
        })?;
        versions.push(version.clone());
    }
    Ok((content_type, stored, versions))
}

/// The request id of an upload's end. An upload ends once, so that without a condition its name is enough. With one, a
/// later try may be meant to be judged afresh: only what the client says to be the same call is.
fn request_of(
    context: &Context,
    upload: &str,
    condition: PutCondition,
    parts: &Parts,
) -> Option<RequestId> {
    let call = parts.headers.get(SAME_CALL).map_or(&b""[..], |value| value.as_bytes());
    let call = match condition {
        PutCondition::Any => b"",
        _ if call.is_empty() => return None,
        _ => call,
    };
    let mut hasher = blake3::Hasher::new();
    let names = context.names.iter().map(|name| name.as_bytes());
    for word in names.chain([upload.as_bytes(), call]) {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word);
    }
    RequestId::parse(&format!("s3-{}", hasher.finalize().to_hex())).ok()
}

/// The answer to an end that comes again when the parts have gone: what was committed by the first, if anything was.
async fn complete_again<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
    key: ObjectKey,
    request: Option<RequestId>,
    fault: Fault,
) -> Result<Reply, Fault> {
    let Some(request) = request else { return Err(fault) };
    let Some(done) = written(app, context, &request).await? else { return Err(fault) };
    match version_of(app, context, key, done.version).await? {
        Some((_, version, _)) => Ok(completed(call, &version.digest)),
        None => Err(fault),
    }
}

/// Numbers and tags of the parts, which must rise.
fn read_parts(document: &str) -> Result<Vec<(usize, String)>, Fault> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for part in elements(document, "Part") {
        let number = first(part, "PartNumber").and_then(|number| number.parse().ok());
        let tag = first(part, "ETag").map(|tag| tag.trim_matches('"').to_owned());
        let (Some(number), Some(tag)) = (number, tag) else { return Err(Fault::malformed_xml()) };
        if parts.last().is_some_and(|(last, _)| *last >= number) {
            let detail = "the parts are not in order of their numbers";
            return Err(Fault::new(400, "InvalidPartOrder", detail));
        }
        parts.push((number, tag));
    }
    match parts.len() {
        1..=PARTS_MAX => Ok(parts),
        _ => Err(Fault::malformed_xml()),
    }
}

pub(super) async fn abort<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<Reply, Fault> {
    let upload = upload_of(call)?;
    let (_, stored) = open(app, context, upload).await?;
    forget(app, context, &stored, upload).await?;
    Ok(text(StatusCode::NO_CONTENT, "application/xml", ""))
}

pub(super) async fn list_parts<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<Reply, Fault> {
    let upload = upload_of(call)?;
    let (_, stored) = open(app, context, upload).await?;
    let names = names_of(call);
    let mut body = format!("<ListPartsResult>{names}{}", element("UploadId", upload));
    body.push_str(&element("IsTruncated", "false"));
    for (part, version) in stored.iter().filter_map(|part| Some((part, part.newest()?))) {
        let number = number_of(part).unwrap_or(0).to_string();
        let facts = [
            element("PartNumber", &number),
            element("LastModified", &iso_date(version.created_ms)),
            element("ETag", &format!("\"{}\"", version.digest)),
            element("Size", &version.size.to_string()),
        ];
        body.push_str(&format!("<Part>{}</Part>", facts.concat()));
    }
    body.push_str("</ListPartsResult>");
    Ok(page(&body))
}
