//! Talking to the other nodes: one outgoing connection per peer, frames in order, reconnects with jitter.
//!
//! Promise: a frame arrives whole (length and checksum) and from a node that named its cluster, id and disk in the
//! handshake, or it does not arrive. Queues to a peer and bytes waiting for the driver are bounded; what does not fit
//! is dropped, which consensus repairs. A connection that closes is dialled again at once: if that is refused, the
//! peer's process is gone and the driver hears so immediately.
//!
//! With TLS, both ends prove to be nodes of one cluster before a frame is read (`stream`, X2).
//!
//! Leaves out: what frames mean (`replica::peer`).

mod blobs;
mod dial;
mod directory;
mod follow;
mod founding;
#[cfg(test)]
mod gossip_test;
mod hello;
mod listen;
mod outgoing;
#[cfg(test)]
mod pieces_test;
#[cfg(test)]
mod strangers_test;
mod stream;
#[cfg(test)]
mod stream_test;
pub(crate) mod wire;

pub use blobs::BlobDialling;
pub use dial::{Dialling, link_hello};
pub use directory::Directory;
pub use follow::follow;
pub use founding::{FoundingAsker, FoundingDoor, meet};
pub use hello::PROTOCOL;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use hello::{Opening, Welcome};
pub(crate) use hello::{decode, encode};
pub use listen::{Links, listen};
pub use outgoing::Outgoing;
pub(crate) use wire::{read as read_frame, write as write_frame};
