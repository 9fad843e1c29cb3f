//! What an applied batch asks of its surroundings. Only a leader acts on effects; a follower drops
//! them, and a new leader derives the same work from the state instead.

use crate::{
    Fence, LeaseKey, LeaseMark, Namespace, QueueHandle, Reply, SessionId, ShardId, TaskId,
    TaskState, WorkerId,
};

/// Who listens to what an entry brings. The state moves alike for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// A follower: neither replies nor effects are put together.
    Nobody,
    /// A leader: replies, and the effects that it acts on.
    Leader,
    /// A watcher: also every change of a task's state.
    #[default]
    Watcher,
}

/// Result of applying one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Orders in the entry.
    pub orders: usize,
    /// One reply per order, in order; empty if the entry was empty or wholly undecodable, or nobody listens.
    pub replies: Vec<Reply>,
    /// What happened, in order.
    pub effects: Vec<Effect>,
    /// A newer version wrote the entry, or an order in it. It changed nothing here, but does so elsewhere: whoever
    /// applied it must not go on with this state.
    pub is_newer: bool,
}

/// One consequence of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The queue has gained claimable tasks: wake parked claims. At most once per queue and entry.
    Ready {
        /// The queue; see `Shard::queue_at`.
        queue: QueueHandle,
    },
    /// A claim began: start its timer.
    Claimed {
        /// Place of the task.
        slot: u32,
        /// Token of the claim.
        fence: Fence,
        /// The worker's process run.
        session: SessionId,
        /// Lifetime unless renewed.
        ttl_ms: u32,
        /// Longest time for the whole attempt, renewed or not; 0 if there is none.
        timeout_ms: u32,
    },
    /// A claim ended in any way: stop its timer.
    Released {
        /// Place of the task.
        slot: u32,
        /// Token of the claim that ended.
        fence: Fence,
    },
    /// A worker was removed, and its session with it: its claims end here.
    SessionOver {
        /// Where it worked.
        namespace: Namespace,
        /// The worker.
        worker: WorkerId,
        /// Its process run.
        session: SessionId,
    },
    /// A task changed state; told to watchers only. `from` is none for a new task, `to` is none for one removed by
    /// retention.
    Moved {
        /// The task's queue (and by it the namespace).
        queue: QueueHandle,
        /// The task.
        id: TaskId,
        /// State before.
        from: Option<TaskState>,
        /// State after.
        to: Option<TaskState>,
        /// Token of the newest claim; 0 if never claimed.
        fence: Fence,
    },
    /// A task waits for this log time: propose a batch then, empty if need be.
    Scheduled {
        /// Log time in ms.
        at_ms: u64,
    },
    /// A message waits for another shard.
    OutboxPut {
        /// Receiving shard.
        target: ShardId,
        /// Its number in the line to that shard.
        sequence: u64,
    },
    /// Messages to this shard were acknowledged: the next may go.
    OutboxAcked {
        /// Receiving shard.
        target: ShardId,
    },
    /// A queue's settings changed in this shard.
    QueueChanged {
        /// The queue.
        queue: QueueHandle,
    },
    /// The recorded members changed.
    MembersChanged,
    /// The cluster has more shards (told by shard 0).
    Grew,
    /// A holding or a wait of a lease began, or was renewed by an entry: start its timer anew.
    LeaseTimed {
        /// The lease.
        key: LeaseKey,
        /// Which holding or wait.
        mark: LeaseMark,
        /// Lifetime unless renewed.
        ttl_ms: u32,
    },
    /// A holding or a wait ended in any way: stop its timer.
    LeaseEnded {
        /// The lease.
        key: LeaseKey,
        /// Which holding or wait.
        mark: LeaseMark,
    },
    /// A task left with its slot, or came with it; told to watchers only.
    Travelled {
        /// The task's queue (and by it the namespace).
        queue: QueueHandle,
        /// The task.
        id: TaskId,
        /// Its state, which does not change on the way.
        state: TaskState,
        /// Token of the newest claim; 0 if never claimed.
        fence: Fence,
        /// Whether it came.
        came: bool,
    },
}
