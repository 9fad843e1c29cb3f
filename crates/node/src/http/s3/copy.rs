//! Copies: of an object, and of some of its bytes into a part of an upload. Pieces are shared where they can be, so that mostly
//! no byte travels.
//!
//! Leaves out: conditions on dates, which are refused (`headers.rs`).

use hyper::HeaderMap;
use hyper::header::HeaderName;
use hyper::http::request::Parts;
use ikada_api::s3::escape::decode;
use ikada_api::s3::xml::element;
use ikada_api::state::{ObjectVersion, PutCondition};

use super::buckets::page;
use super::fault::Fault;
use super::multipart::part_place;
use super::object::{announced, newest, object_key};
use super::route::Call;
use crate::admission::Lane;
use crate::http::answer::Reply;
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_objects;
use crate::http::objects::{Announced, commit, iso_date, tags};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::uploads::{PART_TYPE, Unmeasured, cut};
use crate::objects::Content;

const SOURCE: &str = "x-amz-copy-source";
const SOURCE_RANGE: &str = "x-amz-copy-source-range";
const SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const SOURCE_IF_NONE_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-none-match");

/// Whether a request copies instead of bringing bytes.
pub(super) fn copies(headers: &HeaderMap) -> bool {
    headers.contains_key(SOURCE)
}

/// An object with the bytes of another.
pub(super) async fn copy<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<Reply, Fault> {
    let key = object_key(context)?;
    let found = source(app, context, parts).await?;
    let replaced =
        parts.headers.get("x-amz-metadata-directive").is_some_and(|word| word == "REPLACE");
    let mut announced = announced(parts)?;
    if !replaced {
        announced.content_type = found.content_type.clone();
    }
    let digest = found.digest;
    admit_objects(app, context, (&key.0, &key.1), found.size).await?;
    // A majority reads all of it to say that it has it.
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = share(app, found).await?;
    commit(app, context, key, announced, content).await?;
    Ok(copied("CopyObjectResult", &digest.to_string()))
}

/// A part with some bytes of an object, or with all of them.
pub(super) async fn copy_part<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    call: &Call,
) -> Result<Reply, Fault> {
    let key = part_place(app, context, call).await?;
    let found = source(app, context, parts).await?;
    let (from, to) = range(&parts.headers, found.size)?;
    admit_objects(app, context, (&key.0, &key.1), to - from).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = match (from, to) == (0, found.size) {
        true => share(app, found).await?,
        false => cut(app, &found, from, to).await?,
    };
    let digest = content.digest.to_string();
    let announced = Announced {
        content_type: PART_TYPE.to_owned(),
        condition: PutCondition::Any,
        digest: None,
        length: 0,
    };
    commit(app, context, key, announced, content).await?;
    Ok(copied("CopyPartResult", &digest))
}

fn copied(what: &str, digest: &str) -> Reply {
    let tag = element("ETag", &format!("\"{digest}\""));
    let time = element("LastModified", &iso_date(crate::watch::wall_ms()));
    let mut reply = page(&format!("<{what}>{tag}{time}</{what}>"));
    // No byte came: no measure of what an upload takes.
    reply.extensions_mut().insert(Unmeasured);
    reply
}

/// All pieces of an object, which a majority says again that it has.
async fn share<D: Door>(app: &App<D>, found: ObjectVersion) -> Result<Content, Fault> {
    app.door.shelf().pin(&found.chunks);
    let confirmed = app.door.shelf().confirm(&found.chunks).await;
    confirmed.map_err(|error| problems::not_spread(&error))?;
    Ok(Content { size: found.size, digest: found.digest, chunks: found.chunks })
}

/// The object that is to be copied, if it is as the caller wants it.
async fn source<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<ObjectVersion, Fault> {
    let broken = || Fault::argument("x-amz-copy-source must be bucket/key");
    let named = parts.headers.get(SOURCE).and_then(|value| value.to_str().ok());
    // A question mark that is part of the name would be escaped.
    if named.is_some_and(|named| named.contains("?versionId=")) {
        return Err(Fault::unsupported("versionId"));
    }
    let named = named.and_then(decode).and_then(|bytes| String::from_utf8(bytes).ok());
    let named = named.ok_or_else(broken)?;
    let (bucket, name) = named.trim_start_matches('/').split_once('/').ok_or_else(broken)?;
    let names = vec![bucket.to_owned(), name.to_owned()];
    let namespace = context.namespace.clone();
    let there = Context::of_s3(context.principal.clone(), namespace, names, context.timeout);
    let found = newest(app, &there, object_key(&there)?).await?;
    let wanted = tags(&parts.headers, &SOURCE_IF_MATCH)?;
    let unwanted = tags(&parts.headers, &SOURCE_IF_NONE_MATCH)?;
    let holds = wanted.is_none_or(|tags| tags.hold(&found.digest))
        && unwanted.is_none_or(|tags| !tags.hold(&found.digest));
    match holds {
        true => Ok(found),
        false => {
            let detail = "the object to be copied is not as x-amz-copy-source-if-... wants it";
            Err(Fault::new(412, "PreconditionFailed", detail))
        }
    }
}

/// The first byte that is wanted, and the one behind the last.
fn range(headers: &HeaderMap, size: u64) -> Result<(u64, u64), Fault> {
    let Some(value) = headers.get(SOURCE_RANGE) else { return Ok((0, size)) };
    let text = value.to_str().ok().and_then(|text| text.trim().strip_prefix("bytes="));
    let ends = text.and_then(|text| text.split_once('-'));
    let ends = ends.and_then(|(from, to)| Some((from.parse().ok()?, to.parse::<u64>().ok()?)));
    let broken = || Fault::argument("x-amz-copy-source-range must be bytes=FIRST-LAST");
    let (from, last): (u64, u64) = ends.filter(|(from, last)| from <= last).ok_or_else(broken)?;
    match last < size {
        true => Ok((from, last + 1)),
        false => {
            let detail = format!("the object to be copied has {size} bytes");
            Err(Fault::new(416, "InvalidRange", detail))
        }
    }
}
