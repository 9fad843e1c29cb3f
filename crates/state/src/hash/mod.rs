//! The state hash and the lookup tables.
//!
//! The state hash is the wrapping sum of one digest per record, so that it can be kept up to date
//! record by record and still equals a recomputation in any order (TQ-26).

mod bits;
mod digest;
mod lookup;

pub(crate) use bits::BitSet;
pub(crate) use digest::StateHash;
pub(crate) use digest::{RecordKind, digest_bytes, digest_record, encode_into};
pub(crate) use lookup::Lookup;
