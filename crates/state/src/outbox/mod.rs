//! Messages between shards. Nothing is atomic across shards: a shard writes a message into its own
//! replicated outbox, its leader delivers it at least once, the target applies each number once and
//! in order, and the acknowledgement removes it.

mod acknowledge;
mod deliver;
mod store;

pub use acknowledge::Acked;
pub use deliver::Deliver;
pub use store::OutboxItem;
pub(crate) use store::{Inbox, Outbox, OutboxLine};

use minicbor::{Decode, Encode};

use crate::{Namespace, QueueName, QueueSettings};

/// What one shard tells another. Numbers are stable.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Message {
    /// The settings of a queue, whole.
    #[n(1)]
    QueueSettings {
        /// Owner of the queue.
        #[n(0)]
        namespace: Namespace,
        /// The queue.
        #[n(1)]
        queue: QueueName,
        /// Its settings with their version.
        #[n(2)]
        settings: QueueSettings,
    },
}

impl Message {
    pub(crate) fn is_about_queue(&self, wanted: &Namespace, name: &QueueName) -> bool {
        let Message::QueueSettings { namespace, queue, .. } = self;
        namespace == wanted && queue == name
    }
}
