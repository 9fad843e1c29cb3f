//! Uploads in parts: one large object that arrives piece by piece, and that a later call can go on with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an upload in parts is to become.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUpload {
    /// The object's bucket.
    pub bucket: String,
    /// The object's name in the bucket.
    pub key: String,
    /// What the bytes are; `application/octet-stream` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// How many bytes it will have: what is too large, or does not fit into the quota, is then refused before any part comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A part that has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadPart {
    /// Its place, from 1.
    pub part: u32,
    /// Its bytes.
    pub size: u64,
    /// BLAKE3 digest of its bytes, in hex.
    pub digest: String,
}

/// An upload in parts that was begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadView {
    /// Its id, as whoever began it chose it; 16 digits if that was the S3 door.
    pub upload: String,
    /// The object's bucket.
    pub bucket: String,
    /// The object's name in the bucket.
    pub key: String,
    /// What the bytes are.
    pub content_type: String,
    /// When it was begun (ms since 1970, log time).
    pub begun_ms: u64,
    /// The parts that have arrived, in order; left out in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<UploadPart>,
}

/// A page of uploads in parts, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadPage {
    /// The uploads, without their parts.
    pub uploads: Vec<UploadView>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The end of an upload: its parts become the object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishUpload {
    /// How many parts there are: exactly those from 1 to this must have arrived.
    pub parts: u32,
    /// BLAKE3 digest of all bytes in hex; other bytes are refused. Not looked at when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Only if there is no such object; false when absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_absent: bool,
    /// Only if the object's newest version has this digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// The object's bucket. With `key`: a finish that is sent again under its key is answered as the first time, also when
    /// the upload has gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The object's name in the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// An upload that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadEnded {
    /// Its id.
    pub upload: String,
    /// How many parts went.
    pub parts: u32,
}
