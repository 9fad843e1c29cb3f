//! Which object a request is about.

use ikada_api::convert::parse_name;
use ikada_api::state::{BucketName, ObjectKey, ObjectName, is_reserved};

use crate::http::answer::Stop;
use crate::http::problems;
use crate::http::request::Context;

/// The bucket of the path.
pub(super) fn bucket(context: &Context) -> Result<BucketName, Stop> {
    parse_name("bucket", &context.names[0], BucketName::parse)
        .map_err(|error| problems::bad_field(&error).into())
}

/// The full name of the path's object.
pub(super) fn object_key(context: &Context) -> Result<ObjectKey, Stop> {
    let name = parse_name("key", &context.names[1], ObjectName::parse)
        .map_err(|error| problems::bad_field(&error))?;
    Ok((context.namespace.clone(), bucket(context)?, name))
}

/// The version asked for, if one is.
pub(super) fn version(context: &Context) -> Result<Option<u64>, Stop> {
    Ok(context.query_as("version", "must be the number of a version")?)
}

/// Refuses a bucket that only the cluster itself writes to.
pub(in crate::http) fn check_bucket(bucket: &BucketName) -> Result<(), Stop> {
    match is_reserved(bucket) {
        true => Err(problems::bucket_reserved().into()),
        false => Ok(()),
    }
}
