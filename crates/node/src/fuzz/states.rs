//! What a state machine is fed: entries of the log, and snapshots.

use ikada_replica::state::{Lsn, Member, Shard, invariants};
use ikada_store::Manifest;

/// Entries applied from one input.
const ENTRIES_MAX: usize = 64;
/// Bytes of a BLAKE3 hash.
const HASH_BYTES: usize = 32;
/// Pieces in which a snapshot arrives: records may be cut anywhere.
const PIECE_BYTES: usize = 97;

/// The first state of a lone shard.
pub(super) fn genesis() -> Shard {
    let (peer_addr, client_addr) = ("127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned());
    let member = Member { node: 1, incarnation: 1, peer_addr, client_addr };
    Shard::genesis(0, 1, &[member])
}

/// Entries one after another, each behind its length in two bytes. Whatever they hold, the state keeps its rules, and a
/// snapshot of it is read again.
pub fn entries(bytes: &[u8]) {
    let mut shard = genesis();
    let first = shard.applied().index + 1;
    let mut rest = bytes;
    for index in (first..).take(ENTRIES_MAX) {
        let Some((length, behind)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (entry, behind) = behind.split_at(length);
        shard.apply(Lsn { term: 2, index }, entry);
        rest = behind;
    }
    check(&shard);
}

/// A snapshot: its table of contents (first byte 0; 1 if the hash at its end shall be made right first), or else its
/// content.
pub fn snapshot(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    match form {
        0 => read_manifest(bytes),
        1 => {
            let body = &bytes[..bytes.len().saturating_sub(HASH_BYTES)];
            read_manifest(&[body, blake3::hash(body).as_bytes()].concat());
        }
        _ => {
            let pieces = bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec);
            if let Ok(shard) = Shard::restore(pieces) {
                check(&shard);
            }
        }
    }
}

fn read_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        let _ = manifest.data_bytes();
        assert_eq!(Manifest::decode(&manifest.encode()).ok(), Some(manifest));
    }
}

/// A state obeys its rules, and a snapshot of it gives the same state.
fn check(shard: &Shard) {
    if let Err(violation) = invariants::all(shard) {
        panic!("{violation}");
    }
    match Shard::restore(shard.freeze().chunks()) {
        Ok(again) => assert_eq!(again.hash(), shard.hash(), "a snapshot gives the same state"),
        Err(error) => panic!("a snapshot of a good state does not restore: {error}"),
    }
}
