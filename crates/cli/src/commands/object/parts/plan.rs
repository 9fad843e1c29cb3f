//! What a file is cut into, and which of it the cluster lacks.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use ikada_api::client::ObjectSource;
use ikada_api::v1::{NewUpload, ObjectInfo, UploadPart};

/// Bytes of a part: what an interruption costs at most, for each part that is on its way. Whole pieces of the store.
const PART_BYTES: u64 = 8 << 20;
/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// What is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) size: u64,
    /// Digest of all bytes.
    pub(super) digest: String,
    /// Digest of each part.
    pub(super) parts: Vec<String>,
}

impl Plan {
    /// Reads a source to its end, and tells how far it is.
    pub(super) fn of(source: &ObjectSource, progress: &AtomicU64) -> io::Result<Plan> {
        let (mut reader, _) = source.reader()?;
        let (mut whole, mut part) = (blake3::Hasher::new(), blake3::Hasher::new());
        let (mut size, mut parts) = (0, Vec::new());
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let left = PART_BYTES - size % PART_BYTES;
            let room = buffer.len().min(left as usize);
            let count = reader.read(&mut buffer[..room])?;
            if count == 0 {
                break;
            }
            whole.update(&buffer[..count]);
            part.update(&buffer[..count]);
            size += count as u64;
            progress.store(size, Ordering::Relaxed);
            if size.is_multiple_of(PART_BYTES) {
                parts.push(part.finalize().to_hex().to_string());
                part.reset();
            }
        }
        if !size.is_multiple_of(PART_BYTES) {
            parts.push(part.finalize().to_hex().to_string());
        }
        Ok(Plan { size, digest: whole.finalize().to_hex().to_string(), parts })
    }

    /// The id of this content's upload into an object: 32 hex digits.
    pub(super) fn upload(&self, wanted: &NewUpload) -> String {
        let kind = wanted.content_type.as_deref().unwrap_or("");
        let size = self.size.to_string();
        let mut hasher = blake3::Hasher::new();
        let names = [wanted.bucket.as_str(), wanted.key.as_str()];
        for word in names.into_iter().chain([kind, &size, &self.digest]) {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(32).collect()
    }

    /// Whether an object has this content.
    pub(super) fn is_that_of(&self, object: &ObjectInfo) -> bool {
        object.digest == self.digest && object.size == self.size
    }

    /// Where a part begins, and how long it is.
    pub(super) fn range(&self, number: u32) -> (u64, u64) {
        let from = u64::from(number - 1) * PART_BYTES;
        (from, PART_BYTES.min(self.size - from))
    }

    /// Numbers of the parts that have not arrived as they are here.
    pub(super) fn missing(&self, there: &[UploadPart]) -> Vec<u32> {
        let there: BTreeMap<u32, &str> =
            there.iter().map(|part| (part.part, part.digest.as_str())).collect();
        let parts = (1..).zip(&self.parts);
        let lacks = |(number, digest): (u32, &String)| {
            (there.get(&number) != Some(&digest.as_str())).then_some(number)
        };
        parts.filter_map(lacks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: u64) -> ObjectSource {
        let bytes: Vec<u8> = (0..length).map(|place| (place / 4_096 + place) as u8).collect();
        ObjectSource::Bytes(bytes.into())
    }

    fn wanted(key: &str) -> NewUpload {
        NewUpload { bucket: "b".into(), key: key.into(), ..NewUpload::default() }
    }

    fn planned(source: &ObjectSource) -> Plan {
        let read = AtomicU64::new(0);
        let plan = Plan::of(source, &read).unwrap();
        assert_eq!(read.into_inner(), plan.size, "whoever watches sees it come to its end");
        plan
    }

    #[test]
    fn ch_1_parts_cover_the_file_and_have_the_digests_of_their_bytes() {
        for size in [PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 7] {
            let source = bytes(size);
            let plan = planned(&source);
            assert_eq!((plan.size, plan.parts.len() as u64), (size, size.div_ceil(PART_BYTES)));
            let mut whole = blake3::Hasher::new();
            for number in 1..=plan.parts.len() as u32 {
                let (from, length) = plan.range(number);
                let part = ObjectSource::Part { of: Box::new(source.clone()), from, length };
                let (mut reader, told) = part.reader().unwrap();
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                assert_eq!((bytes.len() as u64, told), (length, length));
                let digest = blake3::hash(&bytes).to_hex();
                assert_eq!(plan.parts[number as usize - 1], digest.as_str());
                whole.update(&bytes);
            }
            assert_eq!(plan.digest, whole.finalize().to_hex().as_str());
        }
    }

    #[test]
    fn ch_1_only_parts_that_are_not_there_are_missing() {
        let plan = planned(&bytes(3 * PART_BYTES + 1));
        let part = |part: u32, digest: &str| UploadPart { part, size: 1, digest: digest.into() };
        assert_eq!(plan.missing(&[]), [1, 2, 3, 4]);
        let there = [part(2, &plan.parts[1]), part(3, "other"), part(4, &plan.parts[3])];
        assert_eq!(plan.missing(&there), [1, 3]);
    }

    #[test]
    fn ch_1_another_file_or_name_is_another_upload() {
        let (one, other) = (planned(&bytes(10)), planned(&bytes(11)));
        let id = one.upload(&wanted("k"));
        assert_eq!(id, planned(&bytes(10)).upload(&wanted("k")), "found again");
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let typed = NewUpload { content_type: Some("text/csv".into()), ..wanted("k") };
        for different in [other.upload(&wanted("k")), one.upload(&wanted("l")), one.upload(&typed)]
        {
            assert_ne!(id, different);
        }
    }
}
