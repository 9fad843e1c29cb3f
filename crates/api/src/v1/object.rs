//! Objects: named, versioned files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::Number;

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectInfo {
    /// Its bucket.
    pub bucket: String,
    /// Its name in the bucket.
    pub key: String,
    /// Number of the version; rises, and is never used again.
    pub version: Number,
    /// Bytes in all.
    pub size: u64,
    /// BLAKE3 digest of all bytes, in hex; with quotes around it, the ETag.
    pub digest: String,
    /// What the bytes are, as the writer said.
    pub content_type: String,
    /// When it was written (ms since 1970, log time).
    pub modified_ms: u64,
    /// Where the output of a task lies that was brought to an address; the object then says no more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Position of the write, which `min_lsn` takes; only in the answer to an upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn: Option<String>,
}

/// Where the bytes of one version are: pieces, each named by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectPieces {
    /// Number of the version.
    pub version: Number,
    /// Bytes in all.
    pub size: u64,
    /// BLAKE3 digest of all bytes, in hex.
    pub digest: String,
    /// Bytes of each piece but the last.
    pub piece_bytes: u64,
    /// BLAKE3 digests of the pieces in order, in hex.
    pub pieces: Vec<String>,
}

/// A page of a bucket's objects, in order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectPage {
    /// The objects; with `versions=true` every version, the newest first.
    pub objects: Vec<ObjectInfo>,
    /// With a `delimiter`: beginnings of names that go on behind it, each once, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A page of buckets, in order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BucketPage {
    /// Buckets that have objects.
    pub buckets: Vec<String>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a removal came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRemoved {
    /// The bucket.
    pub bucket: String,
    /// The object's name.
    pub key: String,
    /// How many versions went.
    pub versions: u32,
}
