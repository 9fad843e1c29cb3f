//! Bytes of objects on their way: stored here, copied to peers, fetched, repaired, checked and collected.
//!
//! Promises
//! - A piece counts as stored once a majority of the nodes has synced it (A2); only then may its name be committed.
//! - Bytes handed out have the digest asked for, wherever they came from (A1).
//! - Nothing here runs on the driver's or the log's thread; bulk travels on connections of its own, never between
//!   consensus messages. Memory is bounded by the number of uploads and downloads, not by their sizes.
//! - A blob is removed only after a committed `Collect`, another look at all shards, and if nothing pins it (A3).
//!
//! Every node keeps every blob, so any of them can serve any object. A node that lacks one fetches it when it is asked
//! for, or when it tidies up.
//!
//! Leaves out: names and versions (`state::object`), HTTP, who may call.

mod ask;
mod cache;
mod collect;
mod counters;
mod fetch;
mod leave;
mod message;
mod repair;
mod scrub;
mod serve;
mod shelf;
mod spread;
mod tend;
mod upload;

pub use counters::BlobCounters;
pub use fetch::FetchError;
#[cfg(test)]
pub(crate) use message::MESSAGE_BYTES_MAX;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use message::{BlobAsk, BlobTold};
pub(crate) use serve::serve_peer;
pub use shelf::{Shelf, ShelfOptions};
pub use spread::SpreadError;
pub use tend::tend;
pub use upload::{Content, Upload};
