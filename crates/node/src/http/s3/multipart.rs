//! Uploads in parts. Parts are objects of a bucket that this door keeps for itself; at the end their bytes are put
//! together, and equal pieces are stored once. An upload that nobody ends is removed after a week.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::state::{
    BucketName, Command, DeleteObject, Object, ObjectKey, ObjectName, Order, PutCondition,
    RequestKey,
};
use ikada_replica::call::{Query, View};

use super::body::Reader;
use super::buckets::page;
use super::fault::Fault;
use super::object::{announced, newest, object_key, store};
use super::route::Call;
use crate::admission::Lane;
use crate::http::answer::{Reply, text};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::{Announced, commit, iso_date, write_one};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::read;
use crate::objects::Upload;
use crate::watch::wall_ms;
use ikada_api::s3::xml::{element, elements, first};

/// Where parts are kept.
pub(super) const UPLOADS_BUCKET: &str = "s3-uploads";
/// Most parts of one upload, as S3 has it.
const PARTS_MAX: usize = 10_000;
/// Parts read at a time.
const PAGE: usize = 1_000;
/// How long an upload may take.
const LIFE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// What a part is.
const PART_TYPE: &str = "application/octet-stream";

fn place(context: &Context, name: &str) -> Result<ObjectKey, Fault> {
    let bucket = BucketName::parse(UPLOADS_BUCKET).map_err(|_| problems::internal())?;
    let name = ObjectName::parse(name).map_err(|_| Fault::no_upload())?;
    Ok((context.namespace.clone(), bucket, name))
}

fn part_name(upload: &str, number: usize) -> String {
    format!("{upload}/{number:05}")
}

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

/// Objects of an upload: the first says what it will be, the others are its parts.
async fn objects<D: Door>(
    app: &App<D>,
    context: &Context,
    prefix: &str,
) -> Result<Vec<std::sync::Arc<Object>>, Fault> {
    let mut found = Vec::new();
    let mut after = None;
    while found.len() <= PARTS_MAX {
        let (namespace, bucket, _) = place(context, "x")?;
        let prefix = prefix.to_owned();
        let query = Query::Objects { namespace, bucket, prefix, after, limit: PAGE };
        let seen = read(app, context, query).await?;
        let View::Objects(page) = seen.view else { return Err(mismatch("list parts").into()) };
        found.extend(page.objects);
        match page.next {
            Some(next) => after = Some(next.to_string()),
            None => break,
        }
    }
    Ok(found)
}

/// The parts of an upload into the call's object, and the type that was announced for it.
async fn open<D: Door>(
    app: &App<D>,
    context: &Context,
    upload: &str,
) -> Result<(String, Vec<std::sync::Arc<Object>>), Fault> {
    let mut all = objects(app, context, &format!("{upload}/")).await?;
    let begun = all.first().filter(|object| object.name.as_str() == part_name(upload, 0));
    let begun = begun.and_then(|object| object.newest().cloned()).ok_or_else(Fault::no_upload)?;
    let target = match begun.chunks.first() {
        Some(digest) => app.door.shelf().fetch(*digest, true).await,
        None => return Err(Fault::no_upload()),
    };
    let target = target.map_err(|error| problems::piece_missing(&error))?;
    if target != context.names.join("/").as_bytes() {
        return Err(Fault::no_upload());
    }
    all.remove(0);
    Ok((begun.content_type, all))
}

pub(super) async fn begin<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: &Call,
) -> Result<Reply, Fault> {
    object_key(context)?;
    sweep(app, context).await;
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
    Ok(page(&format!("<InitiateMultipartUploadResult>{names}{id}</InitiateMultipartUploadResult>")))
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
    let upload = upload_of(call)?;
    let number = call.query("partNumber").and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=PARTS_MAX).contains(number));
    let number = number.ok_or_else(|| Fault::argument("partNumber must be 1 to 10000"))?;
    newest(app, context, place(context, &part_name(upload, 0))?)
        .await
        .map_err(|fault| if fault.code == "NoSuchKey" { Fault::no_upload() } else { fault })?;
    let announced = Announced {
        content_type: PART_TYPE.to_owned(),
        condition: PutCondition::Any,
        digest: None,
        length: 0,
    };
    let key = place(context, &part_name(upload, number))?;
    store(app, context, key, announced, reader).await
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
    let (content_type, stored) = open(app, context, upload).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let shelf = app.door.shelf();
    let mut whole = Upload::begin(shelf);
    for (number, tag) in wanted {
        let name = part_name(upload, number);
        let part = stored.iter().find(|part| part.name.as_str() == name);
        let version =
            part.and_then(|part| part.newest()).filter(|version| version.digest.to_string() == tag);
        let version = version.ok_or_else(|| {
            let detail = format!("part {number} was not uploaded with this ETag");
            Fault::new(400, "InvalidPart", detail)
        })?;
        for digest in version.chunks.iter() {
            let piece = shelf.fetch(*digest, false).await;
            let piece = piece.map_err(|error| problems::piece_missing(&error))?;
            if whole.size() + piece.len() as u64 > Upload::BYTES_MAX {
                return Err(problems::object_too_large(Upload::BYTES_MAX).into());
            }
            whole.push(piece).await.map_err(|error| problems::not_spread(&error))?;
        }
    }
    let content = whole.finish().await.map_err(|error| problems::not_spread(&error))?;
    let digest = content.digest;
    let announced = Announced { content_type, ..announced(parts)? };
    commit(app, context, key, announced, content).await?;
    forget(app, context, &stored, upload).await;
    let names = names_of(call);
    let tag = element("ETag", &format!("\"{digest}\""));
    Ok(page(&format!(
        "<CompleteMultipartUploadResult>{names}{tag}</CompleteMultipartUploadResult>"
    )))
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
    forget(app, context, &stored, upload).await;
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
        let number = part.name.as_str().rsplit('/').next().unwrap_or("0").trim_start_matches('0');
        let facts = [
            element("PartNumber", number),
            element("LastModified", &iso_date(version.created_ms)),
            element("ETag", &format!("\"{}\"", version.digest)),
            element("Size", &version.size.to_string()),
        ];
        body.push_str(&format!("<Part>{}</Part>", facts.concat()));
    }
    body.push_str("</ListPartsResult>");
    Ok(page(&body))
}

/// Removes an upload. What cannot be removed now is swept up later.
async fn forget<D: Door>(
    app: &App<D>,
    context: &Context,
    stored: &[std::sync::Arc<Object>],
    upload: &str,
) {
    let names = stored.iter().map(|part| part.name.to_string());
    // The first last: without it the others cannot be found again by their upload.
    for name in names.chain([part_name(upload, 0)]) {
        let Ok((namespace, bucket, name)) = place(context, &name) else { continue };
        let request = app.door.fresh_request_id();
        let delete = DeleteObject { bucket, name, version: None, condition: PutCondition::Any };
        let key = Some(RequestKey { id: request.clone(), item: 0 });
        let order = Order { namespace, request: key, command: Command::DeleteObject(delete) };
        if write_one(app, context, order, &request).await.is_err() {
            tracing::debug!(upload, "a part of an upload stays until it is swept up");
        }
    }
}

/// Removes uploads that nobody ended, as far as the first page shows them.
async fn sweep<D: Door>(app: &App<D>, context: &Context) {
    let Ok((namespace, bucket, _)) = place(context, "x") else { return };
    let query =
        Query::Objects { namespace, bucket, prefix: String::new(), after: None, limit: PAGE };
    let Ok(seen) = read(app, context, query).await else { return };
    let View::Objects(page) = seen.view else { return };
    let over = wall_ms().saturating_sub(LIFE_MS);
    let old = page.objects.into_iter().find(|object| {
        let begun = object.name.as_str().ends_with("/00000");
        begun && object.newest().is_some_and(|version| version.created_ms < over)
    });
    let Some(old) = old else { return };
    let Some((upload, _)) = old.name.as_str().split_once('/') else { return };
    if let Ok(mut stored) = objects(app, context, &format!("{upload}/")).await {
        stored.retain(|part| !part.name.as_str().ends_with("/00000"));
        forget(app, context, &stored, upload).await;
    }
}
