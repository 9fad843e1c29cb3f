//! The first words on a connection, and the answer.

use ikada_replica::founding::FoundingMessage;
use minicbor::{Decode, Encode};

/// Spoken by this build; another number is refused.
pub const PROTOCOL: u16 = 1;
/// Longest opening that is read: a founding question with all candidates there may be. Nobody has vouched for its sender
/// yet (X7), and what it decodes to is held beside it.
pub const OPENING_BYTES_MAX: usize = 24 << 10;
/// Longest answer that is read, from a node that we chose to ask: all members with their addresses.
pub const WELCOME_BYTES_MAX: usize = 128 << 10;

/// What a dialler wants.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Opening {
    /// To send frames.
    #[n(0)]
    Link(#[n(0)] LinkHello),
    /// To ask one founding question.
    #[n(1)]
    Founding(#[n(0)] FoundingMessage),
    /// To ask about blobs.
    #[n(2)]
    Blobs(#[n(0)] LinkHello),
}

/// Who opens a link, to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LinkHello {
    /// Protocol version.
    #[n(0)]
    pub protocol: u16,
    /// The cluster.
    #[n(1)]
    pub cluster: u64,
    /// The dialler.
    #[n(2)]
    pub node: u64,
    /// Its disk.
    #[n(3)]
    pub incarnation: u64,
    /// Whom it believes to reach.
    #[n(4)]
    pub to: u64,
}

/// The answer to an opening.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Welcome {
    /// Frames may follow.
    #[n(0)]
    Accepted,
    /// They may not.
    #[n(1)]
    Refused(#[n(0)] String),
    /// The answer to a founding question.
    #[n(2)]
    Founding(#[n(0)] FoundingMessage),
    /// The dialler was removed from the cluster.
    #[n(3)]
    Removed,
}

/// The message as bytes.
pub fn encode<T: Encode<()>>(message: &T) -> Vec<u8> {
    // Writing to a Vec cannot fail.
    minicbor::to_vec(message).unwrap_or_default()
}

/// Reads a message; other bytes give `None`.
pub fn decode<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Option<T> {
    minicbor::decode(bytes).ok()
}
