//! What is stored about one object.

use minicbor::{Decode, Encode};

use super::{Digest, Digests};
use crate::limits::{
    ADDRESS_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, OBJECT_CHUNK_BYTES, OBJECT_CHUNKS_MAX,
    OBJECT_VERSIONS_MAX,
};
use crate::{BucketName, Namespace, ObjectName, RefusalCode};

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ObjectVersion {
    /// Its number; rises with every version of the bucket, and is never used again.
    #[n(0)]
    pub version: u64,
    /// Bytes in all.
    #[n(1)]
    pub size: u64,
    /// What the bytes are, as the writer said.
    #[n(2)]
    pub content_type: String,
    /// Digest of all bytes.
    #[n(3)]
    pub digest: Digest,
    /// Digest of each piece, in order. All but the last have the full size.
    #[n(4)]
    pub chunks: Digests,
    /// Log time at which it was written.
    #[n(5)]
    pub created_ms: u64,
    /// Where the output of a task lies that was brought to an address; none for all others, which leaves no trace in
    /// encodings.
    #[n(6)]
    pub address: Option<String>,
}

impl ObjectVersion {
    /// Whether sizes, pieces and type fit together.
    pub(crate) fn check(&self) -> Result<(), RefusalCode> {
        if self.address.as_ref().is_some_and(|address| address.len() > ADDRESS_BYTES_MAX) {
            return Err(RefusalCode::TooLarge);
        }
        check_content(self.size, &self.chunks, &self.content_type)
    }
}

/// Checks what a writer says of an object's content.
pub(crate) fn check_content(
    size: u64,
    chunks: &Digests,
    content_type: &str,
) -> Result<(), RefusalCode> {
    if chunks.len() > OBJECT_CHUNKS_MAX || content_type.len() > CONTENT_TYPE_BYTES_MAX {
        return Err(RefusalCode::TooLarge);
    }
    let plain = content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match size.div_ceil(OBJECT_CHUNK_BYTES) == chunks.len() as u64 && plain {
        true => Ok(()),
        false => Err(RefusalCode::BadValue),
    }
}

/// One object with all its versions.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Object {
    /// Its owner.
    #[n(0)]
    pub namespace: Namespace,
    /// Its bucket.
    #[n(1)]
    pub bucket: BucketName,
    /// Its name in the bucket.
    #[n(2)]
    pub name: ObjectName,
    /// Its versions, the newest last; at least one.
    #[n(3)]
    pub versions: Vec<ObjectVersion>,
}

impl Object {
    /// The newest version.
    pub fn newest(&self) -> Option<&ObjectVersion> {
        self.versions.last()
    }

    /// One version, or the newest.
    pub fn version(&self, wanted: Option<u64>) -> Option<&ObjectVersion> {
        match wanted {
            None => self.newest(),
            Some(wanted) => self.versions.iter().find(|version| version.version == wanted),
        }
    }

    /// Whether a decoded record obeys the rules that the verbs rely on.
    pub(crate) fn is_valid(&self, sequence: u64) -> bool {
        let rising = self.versions.windows(2).all(|pair| pair[0].version < pair[1].version);
        let given_out = self.versions.iter().all(|version| version.version <= sequence);
        (1..=OBJECT_VERSIONS_MAX).contains(&self.versions.len())
            && rising
            && given_out
            && self.versions.iter().all(|version| version.check().is_ok())
    }
}
