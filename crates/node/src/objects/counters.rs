//! What is counted about blobs, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(super) struct Cells { $(pub(super) $name: AtomicU64,)* }

        /// Numbers since the start of the process.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct BlobCounters { $($(#[$doc])* pub $name: u64,)* }

        impl Cells {
            pub(super) fn read(&self) -> BlobCounters {
                BlobCounters { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Pieces stored on this node, by whomever.
    stored,
    /// Bytes of those.
    stored_bytes,
    /// Pieces read for downloads and peers.
    served,
    /// Bytes of those.
    served_bytes,
    /// Pieces found in memory.
    cache_hits,
    /// Pieces not found in memory.
    cache_misses,
    /// Bytes in memory, now.
    cache_bytes,
    /// Pieces fetched from a peer because they were not here.
    fetched,
    /// Pieces that this node lacked and got back by tidying up.
    repaired,
    /// Pieces that tidying up could not find anywhere.
    unrepaired,
    /// Pieces read to check them.
    scrubbed,
    /// Pieces found damaged and set aside.
    damaged,
    /// Pieces removed because nothing refers to them.
    collected,
    /// Pieces refused for want of room on the disk.
    refused_full,
}

impl Cells {
    pub(super) fn add(cell: &AtomicU64, count: u64) {
        cell.fetch_add(count, Relaxed);
    }
}
