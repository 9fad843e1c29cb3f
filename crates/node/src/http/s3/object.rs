//! One object: put, get, delete; and many removed at once.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG,
    EXPIRES, HeaderMap, HeaderValue,
};
use hyper::http::request::Parts;
use ikada_api::state::{ObjectKey, ObjectName, ObjectVersion};
use ikada_replica::call::{Query, View};

use super::body::Reader;
use super::buckets::{bucket, page};
use super::fault::Fault;
use super::route::Call;
use crate::admission::Lane;
use crate::http::answer::{Reply, text};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::namespaces::admit_objects;
use crate::http::objects::{Announced, commit, condition, delete as remove, download};
use crate::http::passage::Arrived;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::read;
use ikada_api::s3::xml::{element, elements, unescape};

/// What an object is when its writer does not say, as S3 has it.
const TYPE_DEFAULT: &str = "binary/octet-stream";
/// Most keys of one removal.
const DELETES_MAX: usize = 1_000;

/// The full name of a call's object.
pub(super) fn object_key(context: &Context) -> Result<ObjectKey, Fault> {
    let name = ObjectName::parse(&context.names[1]);
    let name = name.map_err(|error| Fault::argument(format!("key: {error}")))?;
    Ok((context.namespace.clone(), bucket(context)?, name))
}

/// What the headers say of the object.
pub(super) fn announced(parts: &Parts) -> Result<Announced, Fault> {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or(TYPE_DEFAULT).to_owned();
    Ok(Announced { content_type, condition: condition(&parts.headers)?, digest: None, length: 0 })
}

/// An answer without a body that names the object's new ETag.
fn stored(reply: &Reply) -> Reply {
    let mut response = text(StatusCode::OK, "application/xml", "");
    if let Some(tag) = reply.headers().get(ETAG) {
        response.headers_mut().insert(ETAG, tag.clone());
    }
    response
}

pub(super) async fn put<D, B>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    reader: Reader<B>,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (key, announced) = (object_key(context)?, announced(parts)?);
    store(app, context, key, announced, reader).await
}

/// Takes the bytes of an object, or of a part of one, in and gives them their name.
pub(super) async fn store<D, B>(
    app: &App<D>,
    context: &Context,
    key: ObjectKey,
    announced: Announced,
    reader: Reader<B>,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    admit_objects(app, context, (&key.0, &key.1), reader.announced()).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = reader.store(app).await?;
    let reply = commit(app, context, key, announced, content).await?;
    Ok(stored(&reply))
}

/// The newest version of an object.
pub(super) async fn newest<D: Door>(
    app: &App<D>,
    context: &Context,
    key: ObjectKey,
) -> Result<ObjectVersion, Fault> {
    let seen = read(app, context, Query::Object(key)).await?;
    let View::Object(object) = seen.view else { return Err(mismatch("get object").into()) };
    let version = object.and_then(|object| object.newest().cloned());
    let missing = ikada_api::state::RefusalCode::ObjectNotFound;
    version.ok_or_else(|| problems::refusal(missing).into())
}

/// No object has tags, which clients look at before they copy one.
pub(super) async fn tags<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Fault> {
    newest(app, context, object_key(context)?).await?;
    Ok(page("<Tagging><TagSet></TagSet></Tagging>"))
}

/// Headers that whoever signs a download chooses for its answer, such as the name under which browsers keep it.
fn chosen(call: &Call) -> Result<HeaderMap, Fault> {
    let mut chosen = HeaderMap::new();
    for header in [
        CACHE_CONTROL,
        CONTENT_DISPOSITION,
        CONTENT_ENCODING,
        CONTENT_LANGUAGE,
        CONTENT_TYPE,
        EXPIRES,
    ] {
        let name = format!("response-{header}");
        let Some(text) = call.query(&name) else { continue };
        let value = HeaderValue::from_str(text);
        let broken = |_| Fault::argument(format!("{name} is no value of a header"));
        chosen.insert(header, value.map_err(broken)?);
    }
    Ok(chosen)
}

pub(super) async fn get<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: &Call,
) -> Result<Reply, Fault> {
    object_key(context)?;
    let wanted = chosen(call)?;
    let mut reply = download(app, context, parts).await?;
    if reply.status().is_success() {
        reply.headers_mut().extend(wanted);
    }
    Ok(reply)
}

/// What is not there counts as removed.
pub(super) async fn delete<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<Reply, Fault> {
    object_key(context)?;
    match remove(app, context, parts).await.map_err(Fault::from) {
        Err(fault) if fault.code != "NoSuchKey" => Err(fault),
        _ => Ok(text(StatusCode::NO_CONTENT, "application/xml", "")),
    }
}

pub(super) async fn delete_many<D, B>(
    app: &App<D>,
    context: &Context,
    reader: Reader<B>,
) -> Result<Reply, Fault>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    bucket(context)?;
    let document = reader.document().await?;
    let arrived = Arrived::now();
    // All or nothing: whoever names a version does not mean all of them.
    if document.contains("<VersionId") {
        return Err(Fault::unsupported("VersionId"));
    }
    let keys: Option<Vec<String>> = elements(&document, "Key").into_iter().map(unescape).collect();
    let keys = keys.filter(|keys| (1..=DELETES_MAX).contains(&keys.len()));
    let keys = keys.ok_or_else(Fault::malformed_xml)?;
    context.subject.are(keys.iter().map(|key| format!("{}/{key}", context.names[0])));
    let quiet = elements(&document, "Quiet").first() == Some(&"true");
    let mut body = String::from("<DeleteResult>");
    for key in keys {
        let shown = element("Key", &key);
        match delete_one(app, context, key).await {
            Ok(()) if quiet => {}
            Ok(()) => body.push_str(&format!("<Deleted>{shown}</Deleted>")),
            Err(fault) => {
                let words = [element("Code", fault.code), element("Message", &fault.detail)];
                body.push_str(&format!("<Error>{shown}{}</Error>", words.concat()));
            }
        }
    }
    body.push_str("</DeleteResult>");
    Ok(arrived.mark(page(&body)))
}

/// Removes an object of the call's bucket by its name.
async fn delete_one<D: Door>(app: &App<D>, context: &Context, key: String) -> Result<(), Fault> {
    let names = vec![context.names[0].clone(), key];
    let namespace = context.namespace.clone();
    let there = Context::of_s3(context.principal.clone(), namespace, names, context.timeout);
    let (parts, ()) = hyper::Request::new(()).into_parts();
    delete(app, &there, &parts).await.map(|_| ())
}
