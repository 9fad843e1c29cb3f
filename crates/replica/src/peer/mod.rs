//! What nodes of one cluster say to each other, and how it is framed.
//!
//! Promise: any bytes decode to messages or to nothing, never to a panic; a frame of another cluster, for another
//! node, or from a disk that the cluster does not know under that id is never handed on.
//!
//! Leaves out: sockets, checksums and encryption (the node's transport).

mod frame;
mod message;

pub use frame::{FrameError, Framer, Header, Messages, decode, open};
pub use message::{
    Ask, HashReport, Hint, PeerMessage, RenewTold, SnapshotMessage, Told, WorkerTold,
};
