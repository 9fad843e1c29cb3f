//! The S3 protocol as far as both of its sides need it, and a small client of object stores.
//!
//! Promise: the node's S3 door checks signatures with the same words that this client signs with (`sign`), and both use
//! the same escapes (`escape`) and the same little XML (`xml`). The client ([`Store`]) moves one object of any size in
//! bounded memory: every part and every range is tried again by itself, and an upload shows under its name whole or not
//! at all. Azure's store is reached by the same client: what differs is in [`crate::azure`].
//!
//! Leaves out: who may enter the door (the node's business), and all of S3 but one object at a time and lists of names.

mod download;
pub mod escape;
mod list;
mod place;
mod send;
mod settings;
pub mod sign;
mod upload;
pub mod xml;

pub use download::Download;
pub use list::Listed;
pub use place::{BadPlace, Door, StorePlace};
pub use send::{Facts, Store, StoreError};
pub use settings::{BadSettings, StoreRight, StoreSettings};
pub use sign::Credentials;
pub use upload::{PART_BYTES_MIN, Upload};
