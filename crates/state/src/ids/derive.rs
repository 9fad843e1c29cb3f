//! Hashes of names: table keys and ids derived from requests. Fixed for ever, since derived ids
//! route.
//!
//! These hashes are fast, not secret: they spread and compare, they do not authenticate.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::{Namespace, RequestId, RequestKey, TaskId};

/// Hash of a task's full name, for the id table.
pub(crate) fn task_hash(namespace: &str, id: &str) -> u64 {
    // The namespace seeds the hash, so that no joined copy of both names is needed.
    let mut seed = namespace.len() as u64;
    for part in namespace.as_bytes().chunks(8) {
        let mut word = [0u8; 8];
        word[..part.len()].copy_from_slice(part);
        seed = (seed ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    xxh3_64_with_seed(id.as_bytes(), seed)
}

/// Hash of a request item's full name, for the dedup windows.
pub(crate) fn request_hash(namespace: &Namespace, key: &RequestKey) -> [u64; 2] {
    request_item_hash(namespace, &key.id, key.item)
}

fn request_item_hash(namespace: &Namespace, id: &RequestId, item: u32) -> [u64; 2] {
    let (namespace, id) = (namespace.as_str().as_bytes(), id.as_str().as_bytes());
    // Names are at most 128 bytes, so the joined form fits the stack.
    let mut joined = [0u8; 2 * super::name::NAME_BYTES_MAX + 5];
    let mut length = 0;
    for part in [namespace, b"/", id, &item.to_le_bytes()[..]] {
        joined[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    let hash = xxhash_rust::xxh3::xxh3_128(&joined[..length]);
    [(hash >> 64) as u64, hash as u64]
}

/// Hash of a request as a whole, for its tombstone. No item has this number.
pub(crate) fn void_hash(namespace: &Namespace, request: &RequestId) -> [u64; 2] {
    request_item_hash(namespace, request, u32::MAX)
}

/// The id of a task whose submitter named none: the same request item always gives the same id, so
/// that a resend finds the first task, also by way of another node.
pub fn derive_task_id(namespace: &Namespace, key: &RequestKey) -> TaskId {
    let mut hasher = Xxh3::with_seed(0x7461_736b);
    hasher.update(namespace.as_str().as_bytes());
    hasher.update(b"/");
    hasher.update(key.id.as_str().as_bytes());
    hasher.update(&key.item.to_le_bytes());
    let text = format!("{:032x}", hasher.digest128());
    TaskId::parse(&text).unwrap_or_else(|error| panic!("derived task id: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_stable_and_distinct() {
        let key = |id: &str, item| RequestKey { id: RequestId::parse(id).unwrap(), item };
        let default = Namespace::default();
        let other = Namespace::parse("other").unwrap();
        let first = derive_task_id(&default, &key("r1", 0));
        assert_eq!(first, derive_task_id(&default, &key("r1", 0)));
        assert_eq!(first.as_str().len(), 32);
        assert_ne!(first, derive_task_id(&default, &key("r1", 1)));
        assert_ne!(first, derive_task_id(&default, &key("r2", 0)));
        assert_ne!(first, derive_task_id(&other, &key("r1", 0)));
    }
}
