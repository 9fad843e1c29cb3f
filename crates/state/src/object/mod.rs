//! Objects: named, versioned files. The state holds names, sizes and digests; the bytes are blobs outside the log.
//!
//! Promises: an object's version names all its pieces, in order, each by digest. A version's number is never used
//! again. An overwrite is a new version; the newest [`OBJECT_VERSIONS_MAX`](crate::limits::OBJECT_VERSIONS_MAX) are
//! kept. A bucket lives in one shard, so that what is written to a bucket has one order.
//!
//! Which blobs are referred to is derived and exact: whoever wants to remove a blob asks here first (A3).
//!
//! Left out: bytes, copies, pins and when to collect (the node's business). A bucket is there as long as it has objects.

mod collect;
mod delete;
mod digest;
mod list;
mod pages;
mod put;
mod record;
mod references;
mod route;
mod store;

pub use collect::Collect;
pub use delete::DeleteObject;
pub use digest::{Digest, Digests};
pub use list::ObjectPage;
pub(crate) use pages::Pages;
pub use put::{PutCondition, PutObject};
pub(crate) use record::check_content;
pub use record::{Object, ObjectVersion};
pub use references::References;
pub use route::{
    BUCKET_AUTOSCALE, BUCKET_JOBS, BUCKET_LOGS, BUCKET_PROGRAMS, BUCKET_TASKS, BUCKET_UPLOADS,
    is_owned, is_published, is_reserved, routing_key,
};
pub use store::ObjectKey;
