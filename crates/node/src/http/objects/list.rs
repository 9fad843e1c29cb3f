//! `GET /v1/objects/{bucket}` and `GET /v1/objects`: what there is, a page at a time.

use ikada_api::convert::parse_name;
use ikada_api::state::{BucketName, Object, ObjectVersion, is_owned};
use ikada_api::v1::{BucketPage, ObjectInfo, ObjectPage};
use ikada_replica::call::{Query, View};

use super::fold::{Wish, fold};
use super::name::bucket;
use super::show::describe;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

/// Longest delimiter of names.
const DELIMITER_BYTES_MAX: usize = 64;

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let versions = context.query_as("versions", "must be true or false")?.unwrap_or(false);
    let (bucket, prefix) = (bucket(context)?, context.query("prefix").unwrap_or("").to_owned());
    check_prefix(&bucket, &prefix)?;
    let delimiter = context.query("delimiter").filter(|delimiter| !delimiter.is_empty());
    if delimiter.is_some_and(|delimiter| delimiter.len() > DELIMITER_BYTES_MAX) {
        let rule = format!("must have at most {DELIMITER_BYTES_MAX} bytes");
        return Err(problems::bad_parameter("delimiter", rule).into());
    }
    let (after, max) = (context.query("after").map(str::to_owned), limit(app, context)?);
    let wish = Wish { bucket, prefix: &prefix, delimiter, max, after };
    let found = fold(app, context, &wish).await?;
    let show = |object: &Object| -> Vec<ObjectInfo> {
        let shown = |version: &ObjectVersion| describe(object, version);
        match versions {
            true => object.versions.iter().rev().map(shown).collect(),
            false => object.newest().map(shown).into_iter().collect(),
        }
    };
    let objects = found.objects.iter().flat_map(|object| show(object)).collect();
    let seen = found.seen.ok_or_else(|| mismatch("list objects"))?;
    show_view(context, &seen, &ObjectPage { objects, prefixes: found.prefixes, next: found.next })
}

pub(in crate::http) async fn list_buckets<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let after = context.query("after").map(|text| parse_name("after", text, BucketName::parse));
    let after = after.transpose().map_err(|error| problems::bad_field(&error))?;
    let limit = limit(app, context)?;
    let query = Query::Buckets { namespace: context.namespace.clone(), after, limit };
    let seen = read(app, context, query).await?;
    let View::Buckets(names) = &seen.view else {
        return Err(mismatch("list buckets"));
    };
    let buckets: Vec<String> = names.iter().map(ToString::to_string).collect();
    let next = buckets.last().filter(|_| buckets.len() == limit).cloned();
    show_view(context, &seen, &BucketPage { buckets, next })
}

/// Refuses a list of what lies in many shards: one shard's would look like all there is.
pub(in crate::http) fn check_prefix(bucket: &BucketName, prefix: &str) -> Result<(), Stop> {
    if is_owned(bucket) && !prefix.contains('/') {
        let rule = "outputs and logs are listed by task or job: must begin with its id and a slash";
        return Err(problems::bad_parameter("prefix", rule).into());
    }
    Ok(())
}

/// How many items a page has.
pub(in crate::http) fn limit<D: Door>(app: &App<D>, context: &Context) -> Result<usize, Stop> {
    let rule = format!("must be 1 to {}", app.limits.page_max);
    let limit: usize = context.query_as("limit", &rule)?.unwrap_or(app.limits.page_default);
    match (1..=app.limits.page_max).contains(&limit) {
        true => Ok(limit),
        false => Err(problems::bad_parameter("limit", rule).into()),
    }
}

/// How many items a page has, where all is the default.
pub(in crate::http) fn some_limit<D: Door>(app: &App<D>, context: &Context) -> Result<usize, Stop> {
    match context.query("limit") {
        None => Ok(usize::MAX),
        Some(_) => limit(app, context),
    }
}
