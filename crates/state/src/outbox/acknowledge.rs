//! `Acked`: the target has applied all messages up to a number, so they may go.

use minicbor::{Decode, Encode};

use crate::shard::{Batch, Shard};
use crate::{Effect, Reply, ShardId};

/// Acknowledges messages to one target.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Acked {
    /// Shard that applied them.
    #[n(0)]
    pub target: ShardId,
    /// Highest number applied there.
    #[n(1)]
    pub sequence: u64,
}

impl Shard {
    pub(crate) fn apply_acked(&mut self, batch: &mut Batch, order: &Acked) -> Reply {
        self.drop_messages(order.target, order.sequence);
        batch.tell(Effect::OutboxAcked { target: order.target });
        self.growth_acked(batch);
        Reply::Acked
    }
}
