//! Names and numbers that identify things. All are validated when parsed or decoded, so that a
//! value of one of these types is always well-formed.

mod bytes;
mod derive;
mod fence;
mod labels;
mod name;

pub use bytes::SharedBytes;
pub use derive::{derive_fire_id, derive_follow_id, derive_task_id};
pub(crate) use derive::{gone_hash, is_derived, request_hash, settled_hash, task_hash, void_hash};
pub use fence::{Fence, Lsn};
pub use labels::Labels;
pub use name::{
    BucketName, HolderName, JobId, Label, LeaseName, NameError, Namespace, ObjectName,
    PrincipalName, ProgramName, QueueName, RequestId, ScheduleName, StageName, TaskId, TokenId,
    WorkerId,
};

use minicbor::{Decode, Encode};

/// Number of a shard; shard 0 holds the cluster-wide records.
pub type ShardId = u16;

/// One run of a worker process; a restarted worker has another session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct SessionId(#[n(0)] pub u64);

/// A queue of one shard by position; valid for the life of the shard, also across restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueHandle(pub u32);

/// Names one item of one client request, for idempotency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct RequestKey {
    /// The client's request id.
    #[n(0)]
    pub id: RequestId,
    /// Position of the item inside the request; 0 for a request of one item.
    #[n(1)]
    pub item: u32,
}
