//! Buckets. One is there when it holds something, so making one only checks its name.

use hyper::StatusCode;
use ikada_api::state::BucketName;
use ikada_replica::call::{Query, View};

use super::fault::Fault;
use crate::http::answer::{Reply, text};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::read;
use crate::http::uploads::UPLOADS_BUCKET;
use ikada_api::s3::xml::element;

/// Buckets that one list shows; there is no paging in S3.
const BUCKETS_MAX: usize = 1_000;
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

pub(super) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Fault> {
    let namespace = context.namespace.clone();
    let query = Query::Buckets { namespace, after: None, limit: BUCKETS_MAX };
    let seen = read(app, context, query).await?;
    let View::Buckets(names) = &seen.view else { return Err(mismatch("list buckets").into()) };
    let shown = names.iter().filter(|name| name.as_str() != UPLOADS_BUCKET);
    let buckets: String = shown
        .map(|name| {
            let name = element("Name", name.as_str());
            format!("<Bucket>{name}<CreationDate>{CREATED}</CreationDate></Bucket>")
        })
        .collect();
    let owner = element("ID", context.namespace.as_str());
    Ok(page(&format!(
        "<ListAllMyBucketsResult><Owner>{owner}</Owner><Buckets>{buckets}</Buckets></ListAllMyBucketsResult>"
    )))
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
    let query = Query::Objects {
        namespace: context.namespace.clone(),
        bucket: bucket(context)?,
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
