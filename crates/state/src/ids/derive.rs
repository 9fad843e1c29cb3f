//! Hashes of names: table keys and ids derived from requests. Fixed for ever, since derived ids
//! route.
//!
//! These hashes are fast, not secret: they spread and compare, they do not authenticate.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::{Fence, Namespace, RequestId, RequestKey, ScheduleName, TaskId, WorkerId};

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

/// Hash of a task's full name, for what is remembered of it once it is gone. Seeded, so that no request has it.
pub(crate) fn gone_hash(namespace: &Namespace, id: &TaskId) -> [u64; 2] {
    let (namespace, id) = (namespace.as_str().as_bytes(), id.as_str().as_bytes());
    // A handle is a key, a colon and an id.
    let mut joined = [0u8; 3 * super::name::NAME_BYTES_MAX + 2];
    let mut length = 0;
    for part in [namespace, b"/", id] {
        joined[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    let hash = xxhash_rust::xxh3::xxh3_128_with_seed(&joined[..length], 0x676f_6e65);
    [(hash >> 64) as u64, hash as u64]
}

/// Hash of a report: a task's full name, the fence of the attempt and its worker.
pub(crate) fn settled_hash(
    namespace: &Namespace,
    id: &TaskId,
    fence: Fence,
    worker: &WorkerId,
) -> [u64; 2] {
    let mut hasher = Xxh3::with_seed(0x7365_7474);
    for part in [namespace.as_str(), id.as_str(), worker.as_str()] {
        hasher.update(part.as_bytes());
        hasher.update(b"/");
    }
    hasher.update(&fence.0.to_le_bytes());
    let hash = hasher.digest128();
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
    let text = base62(hasher.digest128());
    let text = std::str::from_utf8(&text).unwrap_or_default();
    TaskId::parse(text).unwrap_or_else(|error| panic!("derived task id: {error}"))
}

/// Whether a task's id looks derived from its request.
pub(crate) fn is_derived(id: &TaskId) -> bool {
    let text = id.bare_id().as_bytes();
    text.len() == DERIVED_DIGITS && text.iter().all(u8::is_ascii_alphanumeric)
}

/// Digits of a derived id: 62^22 exceeds 2^128, and 22 bytes fit into a name without the heap.
const DERIVED_DIGITS: usize = 22;

fn base62(mut number: u128) -> [u8; DERIVED_DIGITS] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // Ten digits at a time fit 64 bits: long division by 62 digit by digit would cost more than the hash.
    const PART: u128 = 62u128.pow(10);
    let mut text = [b'0'; DERIVED_DIGITS];
    for part in text.rchunks_mut(10) {
        let mut rest = (number % PART) as u64;
        number /= PART;
        for place in part.iter_mut().rev() {
            *place = DIGITS[(rest % 62) as usize];
            rest /= 62;
        }
    }
    text
}

/// The id (without key) of a follow-up that names none, from its parent and its place in the list.
/// `fence` is that of the completion which brought it; 0 if it came with the parent.
pub fn derive_follow_id(parent: &TaskId, fence: u64, place: u32) -> String {
    let mut hasher = Xxh3::with_seed(0x7468_656e);
    hasher.update(parent.as_str().as_bytes());
    hasher.update(&fence.to_le_bytes());
    hasher.update(&place.to_le_bytes());
    base62(hasher.digest128()).map(char::from).iter().collect()
}

/// The id (without key) of the task of one instant of a schedule: its name and the instant in UTC, so that people can
/// read and write it. Milliseconds appear only where there are some.
pub fn derive_fire_id(schedule: &ScheduleName, instant_ms: u64) -> String {
    let (seconds, ms) = (instant_ms / 1000, instant_ms % 1000);
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = if ms == 0 { String::new() } else { format!(".{ms:03}") };
    format!("{schedule}.{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}{fraction}Z")
}

/// Year, month and day of a number of days since 1970 (Gregorian).
fn date_of(days: u64) -> (u64, u64, u64) {
    // Counted from 1 March of the year 0, leap days come last in their year, and 400 years are one round.
    let days = days + 719_468;
    let (round, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * round + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_count_in_base_62() {
        assert_eq!(&base62(0), b"0000000000000000000000");
        assert_eq!(&base62(61), b"000000000000000000000z");
        assert_eq!(&base62(62), b"0000000000000000000010");
        assert_eq!(&base62(62u128.pow(10)), b"0000000000010000000000");
        assert_eq!(&base62(62u128.pow(21) + 5), b"1000000000000000000005");
        assert_eq!(&base62(u128::MAX), b"7n42DGM5Tflk9n8mt7Fhc7");
    }

    #[test]
    fn names_of_tasks_that_are_gone_are_told_apart() {
        let hash = |namespace: &str, id: &str| {
            gone_hash(&Namespace::parse(namespace).unwrap(), &TaskId::parse(id).unwrap())
        };
        let long = "x".repeat(128);
        let longest = format!("{long}:{long}");
        assert_eq!(hash(&long, &longest), hash(&long, &longest));
        let all =
            [hash("a", "b"), hash("a", "c"), hash("b", "b"), hash("a", "b:b"), hash("ab", "b")];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn the_id_of_an_instant_can_be_read() {
        let name = ScheduleName::parse("nightly").unwrap();
        assert_eq!(derive_fire_id(&name, 0), "nightly.19700101T000000Z");
        assert_eq!(derive_fire_id(&name, 1_709_251_199_000), "nightly.20240229T235959Z");
        assert_eq!(derive_fire_id(&name, 1_709_251_200_250), "nightly.20240301T000000.250Z");
        assert_eq!(derive_fire_id(&name, 951_782_400_000), "nightly.20000229T000000Z");
        assert_eq!(derive_fire_id(&name, 4_107_542_399_000), "nightly.21000228T235959Z");
        let long = ScheduleName::parse(&"x".repeat(96)).unwrap();
        assert!(TaskId::parse(&derive_fire_id(&long, u64::MAX / 4 + 1)).is_ok());
    }

    #[test]
    fn derived_ids_are_stable_and_distinct() {
        let key = |id: &str, item| RequestKey { id: RequestId::parse(id).unwrap(), item };
        let default = Namespace::default();
        let other = Namespace::parse("other").unwrap();
        let first = derive_task_id(&default, &key("r1", 0));
        assert_eq!(first, derive_task_id(&default, &key("r1", 0)));
        assert_eq!(first.as_str().len(), DERIVED_DIGITS);
        assert!(is_derived(&first));
        assert!(is_derived(&TaskId::keyed("k", first.as_str()).unwrap()));
        assert!(!is_derived(&TaskId::parse("order-7").unwrap()));
        assert_ne!(first, derive_task_id(&default, &key("r1", 1)));
        assert_ne!(first, derive_task_id(&default, &key("r2", 0)));
        assert_ne!(first, derive_task_id(&other, &key("r1", 0)));
    }
}
