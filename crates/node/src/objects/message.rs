//! What nodes say to each other about blobs. Numbers are stable.
//!
//! One question at a time per connection. The bytes of a blob follow `Store` and `Found` as a frame of their own.

use ikada_replica::state::{Digest, Digests};
use minicbor::{Decode, Encode};

use crate::gossip::Fact;

/// Longest message without bytes: a thousand digests and some room.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) enum BlobAsk {
    /// Keep this blob; its bytes follow.
    #[n(0)]
    Store(#[n(0)] Digest),
    /// Give me this blob.
    #[n(1)]
    Fetch(#[n(0)] Digest),
    /// Have you got these, and will you keep them for now?
    #[n(2)]
    Confirm(#[n(0)] Digests),
    /// This is what I know of nodes; and you?
    #[n(3)]
    Gossip(#[n(0)] Vec<Fact>),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) enum BlobTold {
    /// It is on disk, and stays for the grace time.
    #[n(0)]
    Stored,
    /// Here it is; its bytes follow.
    #[n(1)]
    Found,
    /// I have not got it.
    #[n(2)]
    Missing,
    /// I have all but these.
    #[n(3)]
    Confirmed(#[n(0)] Digests),
    /// This is what I know.
    #[n(5)]
    Gossip(#[n(0)] Vec<Fact>),
    /// It could not be done.
    #[n(4)]
    Failed {
        /// In words.
        #[n(0)]
        why: String,
        /// Whether the disk has no room.
        #[n(1)]
        full: bool,
    },
}
