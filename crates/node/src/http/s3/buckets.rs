//! Buckets. One is there when it holds something, so making one only checks its name.

use hyper::StatusCode;
use ikada_api::state::{BucketName, is_owned};
use ikada_replica::call::{Query, View};

use super::fault::Fault;
use super::list::{read_token, token};
use super::route::Call;
use crate::http::answer::{Reply, text};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::read;
use crate::http::uploads::UPLOADS_BUCKET;
use ikada_api::s3::xml::element;

/// Most buckets that one answer shows, and that are looked at in one go.
const BUCKETS_MAX: usize = 1_000;
/// Looks for one answer: a prefix may pass over many.
const READS_MAX: usize = 16;
/// Buckets are no records and have no age.
const CREATED: &str = "1970-01-01T00:00:00.000Z";

/// An XML document.
pub(super) fn page(body: &str) -> Reply {
    let page = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}");
    text(StatusCode::OK, "application/xml", page)
}

/// The bucket of a call.
pub(super) fn bucket(context: &Context) -> Result<BucketName, Fault> {
    let name = &context.names[0];
    if name == UPLOADS_BUCKET {
        return Err(Fault::denied("this bucket holds the parts of uploads"));
    }
    let bad = |error: ikada_api::state::NameError| {
        Fault::new(400, "InvalidBucketName", format!("bucket: {error}"))
    };
    BucketName::parse(name).map_err(bad)
}

pub(super) async fn list<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<Reply, Fault> {
    let max = match call.query("max-buckets").map(str::parse::<usize>) {
        None => BUCKETS_MAX,
        Some(Ok(max @ 1..)) => max.min(BUCKETS_MAX),
        Some(_) => return Err(Fault::argument("max-buckets must be at least 1")),
    };
    let prefix = call.query("prefix").unwrap_or("");
    let (names, next) = buckets_under(app, context, prefix, max, begin(call)?).await?;
    let buckets: String = names
        .iter()
        .map(|name| {
            let name = element("Name", name.as_str());
            format!("<Bucket>{name}<CreationDate>{CREATED}</CreationDate></Bucket>")
        })
        .collect();
    let owner = element("ID", context.namespace.as_str());
    let mut body = format!("<Owner>{owner}</Owner><Buckets>{buckets}</Buckets>");
    if call.query("prefix").is_some() {
        body.push_str(&element("Prefix", prefix));
    }
    if let Some(next) = next {
        body.push_str(&element("ContinuationToken", &token(next.as_str())));
    }
    Ok(page(&format!("<ListAllMyBucketsResult>{body}</ListAllMyBucketsResult>")))
}

/// Behind which bucket a list begins.
fn begin(call: &Call) -> Result<Option<BucketName>, Fault> {
    let Some(text) = call.query("continuation-token").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let name = BucketName::parse(&read_token(text)?);
    name.map(Some).map_err(|_| Fault::argument("the continuation token is not ours"))
}

/// Buckets whose names begin so, and behind which one the next answer begins, if there may be more.
async fn buckets_under<D: Door>(
    app: &App<D>,
    context: &Context,
    prefix: &str,
    max: usize,
    mut after: Option<BucketName>,
) -> Result<(Vec<BucketName>, Option<BucketName>), Fault> {
    let mut found = Vec::new();
    for _ in 0..READS_MAX {
        let namespace = context.namespace.clone();
        let query = Query::Buckets { namespace, after: after.clone(), limit: BUCKETS_MAX };
        let seen = read(app, context, query).await?;
        let View::Buckets(names) = seen.view else { return Err(mismatch("list buckets").into()) };
        let more = names.len() == BUCKETS_MAX;
        for name in names {
            if found.len() == max {
                return Ok((found, after));
            }
            after = Some(name.clone());
            if name.as_str() != UPLOADS_BUCKET && name.as_str().starts_with(prefix) {
                found.push(name);
            }
        }
        if !more {
            return Ok((found, None));
        }
    }
    Ok((found, after))
}

pub(super) fn create(context: &Context) -> Result<Reply, Fault> {
    let bucket = bucket(context)?;
    let mut response = text(StatusCode::OK, "application/xml", "");
    if let Ok(location) = format!("/{bucket}").parse() {
        response.headers_mut().insert("location", location);
    }
    Ok(response)
}

pub(super) fn head(context: &Context) -> Result<Reply, Fault> {
    bucket(context)?;
    Ok(text(StatusCode::OK, "application/xml", ""))
}

pub(super) fn location() -> Reply {
    page("<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>")
}

/// Never turned on: the versions that are kept cannot be named at this door.
pub(super) fn versioning(context: &Context) -> Result<Reply, Fault> {
    bucket(context)?;
    let space = "http://s3.amazonaws.com/doc/2006-03-01/";
    Ok(page(&format!("<VersioningConfiguration xmlns=\"{space}\"/>")))
}

/// An empty bucket is gone already.
pub(super) async fn delete<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Fault> {
    let bucket = bucket(context)?;
    if is_owned(&bucket) {
        return Err(Fault::denied("outputs and logs go with their tasks and jobs"));
    }
    let query = Query::Objects {
        namespace: context.namespace.clone(),
        bucket,
        prefix: String::new(),
        after: None,
        limit: 1,
    };
    let seen = read(app, context, query).await?;
    match &seen.view {
        View::Objects(page) if page.objects.is_empty() => {
            Ok(text(StatusCode::NO_CONTENT, "application/xml", ""))
        }
        View::Objects(_) => {
            Err(Fault::new(409, "BucketNotEmpty", "the bucket holds objects; remove them first"))
        }
        _ => Err(mismatch("list objects").into()),
    }
}
