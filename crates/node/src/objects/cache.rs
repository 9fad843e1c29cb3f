//! Pieces in memory, bounded by bytes.
//!
//! A piece is kept under its digest, so what is kept can never be out of date: an overwrite gives other digests, and
//! names are looked up in the state each time (CH-28). The eviction policy keeps what is asked for again and lets a
//! scan over many cold objects pass through a small part of the memory (CH-27).

use bytes::Bytes;
use ikada_replica::state::Digest;
use quick_cache::Weighter;
use quick_cache::sync::Cache as QuickCache;

/// What one piece costs beyond its bytes.
const ENTRY_BYTES: u64 = 128;

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Digest, Bytes> for ByBytes {
    fn weight(&self, _: &Digest, bytes: &Bytes) -> u64 {
        bytes.len() as u64 + ENTRY_BYTES
    }
}

/// Pieces in memory.
pub(super) struct Cache(QuickCache<Digest, Bytes, ByBytes>);

impl Cache {
    /// A cache of so many bytes; 0 keeps nothing.
    pub(super) fn new(bytes_max: u64) -> Cache {
        // An estimate only: it sizes tables, not the bound.
        let pieces = (bytes_max >> 16).clamp(16, 65_536) as usize;
        Cache(QuickCache::with_weighter(pieces, bytes_max, ByBytes))
    }

    pub(super) fn get(&self, digest: &Digest) -> Option<Bytes> {
        self.0.get(digest)
    }

    /// Whether a piece is here; a question of this kind counts for nothing in what is kept.
    pub(super) fn holds(&self, digest: &Digest) -> bool {
        self.0.peek(digest).is_some()
    }

    pub(super) fn put(&self, digest: Digest, bytes: Bytes) {
        self.0.insert(digest, bytes);
    }

    pub(super) fn forget(&self, digest: &Digest) {
        self.0.remove(digest);
    }

    /// Lets go of everything.
    #[cfg(test)]
    pub(super) fn clear(&self) {
        self.0.clear();
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn digest(number: u32) -> Digest {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        // Spread over the shards of the table as real digests do.
        bytes[8..12].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_le_bytes());
        Digest(bytes)
    }

    /// The plain policy: what was used longest ago goes first.
    #[derive(Default)]
    struct Lru(VecDeque<u32>);

    impl Lru {
        fn look(&mut self, number: u32, pieces_max: usize) -> bool {
            let place = self.0.iter().position(|known| *known == number);
            if let Some(place) = place {
                self.0.remove(place);
            }
            self.0.push_back(number);
            if self.0.len() > pieces_max {
                self.0.pop_front();
            }
            place.is_some()
        }
    }

    // CH-27
    #[test]
    fn ch_27_a_scan_does_not_drive_out_what_is_asked_for_again() {
        const PIECES: usize = 200;
        const PIECE_BYTES: u64 = 1_000;
        let cache = Cache::new(PIECES as u64 * (PIECE_BYTES + ENTRY_BYTES));
        let mut lru = Lru::default();
        let piece = Bytes::from(vec![0; PIECE_BYTES as usize]);
        let mut random = fastrand::Rng::with_seed(5);
        let (mut ours, mut plain, mut cold) = (0u32, 0u32, 1_000_000u32);
        for round in 0..60 {
            for _ in 0..400 {
                let number = random.u32(0..150);
                match cache.get(&digest(number)) {
                    Some(_) => ours += u32::from(round > 2),
                    None => cache.put(digest(number), piece.clone()),
                }
                plain += u32::from(lru.look(number, PIECES) && round > 2);
            }
            // A backup reads everything once.
            for _ in 0..600 {
                cold += 1;
                if cache.get(&digest(cold)).is_none() {
                    cache.put(digest(cold), piece.clone());
                }
                lru.look(cold, PIECES);
            }
        }
        assert!(ours > plain + plain / 5, "hits: {ours}, of a plain LRU: {plain}");
        assert!(cache.bytes() <= PIECES as u64 * (PIECE_BYTES + ENTRY_BYTES));
    }

    // CH-26
    #[test]
    fn ch_26_bytes_are_bounded_and_nothing_is_kept_without_room() {
        let cache = Cache::new(10_000);
        for number in 0..100 {
            cache.put(digest(number), Bytes::from(vec![1; 900]));
            assert!(cache.bytes() <= 10_000);
        }
        let none = Cache::new(0);
        none.put(digest(1), Bytes::from_static(b"x"));
        assert!(none.get(&digest(1)).is_none());
    }
}
