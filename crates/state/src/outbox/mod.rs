//! Messages between shards. Nothing is atomic across shards: a shard writes a message into its own
//! replicated outbox, its leader delivers it at least once, the target applies each number once and
//! in order, and the acknowledgement removes it.

mod acknowledge;
mod deliver;
mod fit;
mod store;

pub use acknowledge::Acked;
pub use deliver::Deliver;
pub use fit::messages_fit;
pub use store::OutboxItem;
pub(crate) use store::{Inbox, Outbox, OutboxLine};

use minicbor::{Decode, Encode};

use crate::{Enqueue, Namespace, QueueName, QueueSettings};

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
    /// The task of a schedule's instant.
    #[n(40)]
    Submit {
        /// Owner of the task.
        #[n(0)]
        namespace: Namespace,
        /// The task.
        #[n(1)]
        task: Box<Enqueue>,
    },
}

impl Message {
    /// Bytes that it carries along, roughly.
    pub fn weight(&self) -> usize {
        match self {
            Message::QueueSettings { .. } => 0,
            Message::Submit { task, .. } => task.weight(),
        }
    }

    pub(crate) fn is_about_queue(&self, wanted: &Namespace, name: &QueueName) -> bool {
        match self {
            Message::QueueSettings { namespace, queue, .. } => namespace == wanted && queue == name,
            Message::Submit { .. } => false,
        }
    }
}
