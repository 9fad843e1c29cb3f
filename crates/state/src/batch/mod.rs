//! Log entries: a batch of orders with one log time, so that one entry serves many calls.
//!
//! Format, version 1: version byte, log time (8 bytes, little-endian), number of orders (4 bytes),
//! then per order its length (4 bytes) and the order: in its short form (`brief.rs`) if it has one, else as CBOR. The
//! lengths let one undecodable order be refused alone while the others proceed; an entry whose frame is broken is
//! refused as a whole.

mod brief;
mod build;
mod read;

pub use build::BatchBuilder;
pub(crate) use read::{decode_order, is_newer_order, read_frame};

/// The only format version so far.
const VERSION: u8 = 1;

/// Length of version, time and count.
const HEADER_BYTES: usize = 1 + 8 + 4;
