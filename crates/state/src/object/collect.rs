//! `Collect`: the entry that must be committed before a node removes blobs (A3).
//!
//! A node proposes it for blobs of its own that no shard refers to, and removes them only after it was applied, after
//! another look at all shards, and if nothing pins them. The entry changes nothing but refuses what this shard still
//! refers to: shard 0 speaks for itself, the look speaks for the others.

use minicbor::{Decode, Encode};

use super::Digests;
use crate::limits::COLLECT_DIGESTS_MAX;
use crate::shard::Shard;
use crate::{RefusalCode, Reply};

/// Announces that a node is about to remove blobs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Collect {
    /// The node.
    #[n(0)]
    pub node: u64,
    /// The blobs.
    #[n(1)]
    pub digests: Digests,
}

impl Shard {
    pub(crate) fn apply_collect(&self, order: &Collect) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if order.digests.is_empty() || order.digests.len() > COLLECT_DIGESTS_MAX {
            return Reply::refused(RefusalCode::TooLarge);
        }
        match order.digests.iter().any(|digest| self.index.references.contains_key(digest)) {
            true => Reply::refused(RefusalCode::BlobReferenced),
            false => Reply::Collected,
        }
    }
}
