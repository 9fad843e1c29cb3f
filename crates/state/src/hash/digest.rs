//! Digests of single records. The kind is part of the digest, so that equal bytes of two kinds
//! differ.

use minicbor::Encode;
use xxhash_rust::xxh3::xxh3_64;

/// Kind of a record in the state and in snapshots. Numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Header = 1,
    Queue = 2,
    Task = 3,
    Submit = 4,
    Claim = 5,
    OutboxLine = 6,
    OutboxItem = 7,
    Inbox = 8,
    Member = 9,
    SlotMap = 10,
    Trailer = 11,
    Void = 20,
    Schedule = 40,
    Object = 60,
    Token = 70,
    Roster = 80,
    Away = 90,
    Part = 91,
    Growth = 92,
    Lease = 100,
    Binding = 101,
    Job = 110,
    Worker = 120,
    Quota = 130,
    Remembered = 140,
    Settled = 150,
}

/// Digest of a record from its canonical bytes.
pub(crate) fn digest_bytes(kind: RecordKind, bytes: &[u8]) -> u64 {
    // Mixed in afterwards: a seeded hash of more than 240 bytes would build a secret each time.
    xxh3_64(bytes) ^ (kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Digest of a record from its snapshot encoding.
pub(crate) fn digest_record<T: Encode<()>>(kind: RecordKind, record: &T) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    encode_into(record, &mut bytes);
    digest_bytes(kind, &bytes)
}

/// Encodes into memory, which cannot fail.
pub(crate) fn encode_into<T: Encode<()>>(record: &T, bytes: &mut Vec<u8>) {
    let outcome = minicbor::encode(record, &mut *bytes);
    assert!(outcome.is_ok(), "encoding into memory failed");
}

/// The running sum of all digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateHash(pub(crate) u64);

impl StateHash {
    /// A record came.
    pub(crate) fn add(&mut self, digest: u64) {
        self.0 = self.0.wrapping_add(digest);
    }

    /// A record went.
    pub(crate) fn remove(&mut self, digest: u64) {
        self.0 = self.0.wrapping_sub(digest);
    }
}
