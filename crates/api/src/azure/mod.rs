//! What Azure's blob store wants said differently from S3: the text that is signed (`sign`), whose account it is
//! (`account`), and how blocks and lists are written (`words`).
//!
//! Promise: everything else (tries, waits, bounds, ranges, parts) is that of [`crate::s3::Store`], so that a blob at
//! `az://container/name` is read and written like every other object.
//!
//! Leaves out: identities of Azure's directory, and all kinds of blobs but block blobs.

mod account;
pub mod sign;
mod words;

pub use account::Account;
pub(crate) use account::read_account;
pub(crate) use words::{block_id, block_list, list_query, read_list};
