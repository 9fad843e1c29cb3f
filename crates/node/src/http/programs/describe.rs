//! What an object of the bucket `programs` says about its program.

use ikada_api::state::{
    BUCKET_PROGRAMS, BucketName, Namespace, Object, ObjectKey, ObjectName, ObjectVersion,
    ProgramKind, ProgramName,
};
use ikada_api::v1::ProgramInfo;

use super::{MANIFEST_TYPE, NAMES};
use crate::http::answer::Stop;
use crate::http::dispatch::mismatch;

/// Where an object of the bucket lies.
pub(super) fn place(namespace: &Namespace, name: &str) -> Result<ObjectKey, Stop> {
    let bucket = BucketName::parse(BUCKET_PROGRAMS).map_err(|_| mismatch("program"))?;
    let name = ObjectName::parse(name).map_err(|_| mismatch("program"))?;
    Ok((namespace.clone(), bucket, name))
}

/// Where a program of this name lies.
pub(super) fn named(namespace: &Namespace, name: &ProgramName) -> Result<ObjectKey, Stop> {
    place(namespace, &format!("{NAMES}{name}"))
}

/// How the program of a manifest is run.
pub(super) fn kind_of(version: &ObjectVersion) -> Option<ProgramKind> {
    let word = version.content_type.strip_prefix(MANIFEST_TYPE)?;
    ProgramKind::ALL.into_iter().find(|kind| kind.as_str() == word)
}

/// A program for readers; none if the object is no program.
pub(super) fn describe(object: &Object) -> Option<ProgramInfo> {
    let (name, newest) = (object.name.as_str().strip_prefix(NAMES)?, object.newest()?);
    Some(ProgramInfo {
        name: name.to_owned(),
        kind: kind_of(newest)?.as_str().to_owned(),
        digest: Some(newest.digest.to_string()),
        pushed_ms: Some(newest.created_ms),
        manifest: None,
    })
}
