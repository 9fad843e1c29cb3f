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

use crate::growth::QueueCopy;
use crate::namespace::QuotaRecord;
use crate::{
    BindLease, BoundLease, Digest, Enqueue, Namespace, QueueName, QueueSettings, Recall, SessionId,
    ShardId, SharedBytes, Stored, WorkerId,
};

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
    /// The settings of queues, for a shard that was added.
    #[n(60)]
    Settings {
        /// Some of the queues.
        #[n(0)]
        queues: Vec<QueueCopy>,
    },
    /// Send a slot to another shard.
    #[n(61)]
    Leave {
        /// Which.
        #[n(0)]
        slot: u16,
        /// Where to.
        #[n(1)]
        target: ShardId,
        /// Version of the map that will say so.
        #[n(2)]
        map_version: u64,
        /// Whether no other slot of this shard follows.
        #[n(3)]
        last: bool,
    },
    /// A part of what is under a slot.
    #[n(62)]
    Part {
        /// Which slot.
        #[n(0)]
        slot: u16,
        /// Packed records.
        #[n(1)]
        bytes: SharedBytes,
    },
    /// All parts of a slot are sent: it is the receiver's now.
    #[n(63)]
    Arrive {
        /// Which slot.
        #[n(0)]
        slot: u16,
        /// How many parts it has.
        #[n(1)]
        parts: u32,
        /// The sender's restore epoch.
        #[n(2)]
        epoch: u16,
        /// Fences that the sender granted.
        #[n(3)]
        grants: u64,
        /// Version of the map that will say so.
        #[n(4)]
        map_version: u64,
        /// Last place in line and version that the sender gave.
        #[n(5)]
        sequence: u64,
    },
    /// The sender has taken a slot in.
    #[n(64)]
    Settled {
        /// Which.
        #[n(0)]
        slot: u16,
        /// Whether the shard that had it before keeps objects of it.
        #[n(1)]
        has_objects: bool,
    },
    /// Objects of a slot need not be kept any more: their new shard has them.
    #[n(65)]
    Forget {
        /// Which slot.
        #[n(0)]
        slot: u16,
    },
    /// A holding of a lease ends with an attempt of a task.
    #[n(100)]
    BindLease(#[n(0)] Box<BindLease>),
    /// The attempt that a holding was bound to is over.
    #[n(101)]
    UnbindLease {
        /// Owner of the lease.
        #[n(0)]
        namespace: Namespace,
        /// The holding.
        #[n(1)]
        lease: BoundLease,
    },
    /// A worker's session is over: its claims are reopened.
    #[n(120)]
    WorkerGone {
        /// Where it worked.
        #[n(0)]
        namespace: Namespace,
        /// Its name.
        #[n(1)]
        worker: WorkerId,
        /// The session.
        #[n(2)]
        session: SessionId,
    },
    /// Work was done; whoever does the same again may use what it brought.
    #[n(140)]
    Remember {
        /// Whose work.
        #[n(0)]
        namespace: Namespace,
        /// Its digest.
        #[n(1)]
        key: Digest,
        /// What it brought.
        #[n(2)]
        stored: Box<Stored>,
    },
    /// A task asks for the result of the same work.
    #[n(141)]
    Recall(#[n(0)] Box<Recall>),
    /// The answer.
    #[n(142)]
    Recalled {
        /// The question.
        #[n(0)]
        recall: Box<Recall>,
        /// What is remembered; none if nothing is.
        #[n(1)]
        stored: Option<Box<Stored>>,
    },
    /// Quotas with the receiver's shares.
    #[n(130)]
    Quotas {
        /// Some or all of them.
        #[n(0)]
        quotas: Vec<QuotaRecord>,
    },
}

impl Message {
    /// Bytes that it carries along, roughly.
    pub fn weight(&self) -> usize {
        match self {
            Message::QueueSettings { .. } => 0,
            Message::Submit { task, .. } => task.weight(),
            Message::Settings { queues } => Message::settings_weight(queues),
            Message::Part { bytes, .. } => bytes.len(),
            Message::Remember { stored, .. } => stored.weight(),
            Message::Recalled { stored, .. } => stored.as_ref().map_or(0, |stored| stored.weight()),
            Message::Leave { .. }
            | Message::Arrive { .. }
            | Message::Settled { .. }
            | Message::BindLease(_)
            | Message::UnbindLease { .. }
            | Message::WorkerGone { .. }
            | Message::Recall(_)
            | Message::Quotas { .. }
            | Message::Forget { .. } => 0,
        }
    }

    /// The level that understands this message; the command that puts it into an outbox is of that level or above.
    pub(crate) fn level(&self) -> u32 {
        match self {
            Message::QueueSettings { settings, .. } => settings.level(),
            Message::Settings { queues } => {
                queues.iter().map(|copy| copy.settings.level()).max().unwrap_or(0)
            }
            Message::Submit { task, .. } => task.level(),
            Message::Leave { .. } | Message::Part { .. } | Message::Arrive { .. } => 0,
            Message::Settled { .. } | Message::Forget { .. } => 0,
            Message::BindLease(_) | Message::UnbindLease { .. } | Message::WorkerGone { .. } => 0,
            Message::Quotas { .. } => 1,
            // Sent only for tasks that say `reuse`, which an order of level 1 brought.
            Message::Remember { .. } | Message::Recall(_) | Message::Recalled { .. } => 1,
        }
    }

    /// Blobs of files that it tells of: until it has arrived, nobody else may refer to them.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Digest> {
        let stored = match self {
            Message::Remember { stored, .. } => Some(stored),
            Message::Recalled { stored, .. } => stored.as_ref(),
            _ => None,
        };
        stored.into_iter().flat_map(|stored| stored.pieces())
    }

    /// Settings are whole and have a version, so they may come before what is ahead of them in line.
    pub(crate) fn may_overtake(&self) -> bool {
        matches!(self, Message::QueueSettings { .. } | Message::Quotas { .. })
    }

    pub(crate) fn is_about_queue(&self, wanted: &Namespace, name: &QueueName) -> bool {
        match self {
            Message::QueueSettings { namespace, queue, .. } => namespace == wanted && queue == name,
            Message::Settings { queues } => {
                queues.iter().any(|copy| copy.namespace == *wanted && copy.queue == *name)
            }
            _ => false,
        }
    }
}
