//! Why an order was refused. A refusal is deterministic, part of the reply, and changes no state
//! beyond its own dedup entry. Numbers are stable: they are stored in dedup windows.

use minicbor::{Decode, Encode};

macro_rules! refusal_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Stable code of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
        #[cbor(index_only)]
        pub enum RefusalCode {
            $($(#[$doc])* #[n($number)] $name = $number,)*
        }

        impl RefusalCode {
            /// All codes.
            pub const ALL: &[RefusalCode] = &[$(RefusalCode::$name),*];

            /// The code as public text.
            pub fn as_str(self) -> &'static str {
                match self { $(RefusalCode::$name => $text,)* }
            }

            /// The code of a stored number.
            pub fn from_number(number: u8) -> Option<RefusalCode> {
                match number { $($number => Some(RefusalCode::$name),)* _ => None }
            }
        }
    };
}

refusal_codes! {
    /// The order's bytes do not decode, or its kind is not known.
    BadCommand = 1, "bad_command";
    /// A field is outside its bounds.
    BadValue = 2, "bad_value";
    /// The payload, result or list is too large.
    TooLarge = 3, "too_large";
    /// The task id exists with another body.
    Conflict = 4, "conflict";
    /// The request id was used with another body.
    IdempotencyConflict = 5, "idempotency_conflict";
    /// The task does not exist, or retention removed it.
    TaskNotFound = 6, "task_not_found";
    /// The task is in a terminal state.
    TaskFinished = 7, "task_finished";
    /// The fence is not that of the live claim.
    StaleFence = 8, "stale_fence";
    /// The claim belongs to another worker.
    NotOwner = 9, "not_owner";
    /// The shard or queue holds as many unfinished tasks as it may.
    QueueFull = 10, "queue_full";
    /// The shard holds as many queues as it may.
    TooManyQueues = 11, "too_many_queues";
    /// A message arrived before its predecessor.
    OutboxGap = 12, "outbox_gap";
    /// Too many messages wait for other shards.
    OutboxFull = 13, "outbox_full";
    /// The order belongs to another shard.
    WrongShard = 14, "wrong_shard";
    /// The settings changed since the version the caller named.
    VersionConflict = 15, "version_conflict";
    /// The grant counter is used up; a restore epoch must be raised first.
    FenceExhausted = 16, "fence_exhausted";
    /// The task is not finished, so it can neither be retried nor dropped.
    TaskNotFinished = 30, "task_not_finished";
    /// The request id was ruled out.
    RequestVoided = 31, "request_voided";
    /// The shard holds as many tombstones of requests as it may.
    TooManyVoids = 32, "too_many_voids";
    /// A follow-up names another key than its parent's, or a handle disagrees with its key.
    KeyConflict = 17, "key_conflict";
    /// The queue's unfinished tasks want as many different label sets as they may.
    TooManyLabelSets = 18, "too_many_label_sets";
    /// The task's deadline is over before the task exists.
    DeadlinePassed = 19, "deadline_passed";
    /// The queue has as many dead tasks as it may; retry or drop some.
    DeadFull = 20, "dead_full";
    /// The schedule does not exist.
    ScheduleNotFound = 40, "schedule_not_found";
    /// The cluster holds as many schedules as it may.
    TooManySchedules = 41, "too_many_schedules";
    /// The object, or the version of it, does not exist.
    ObjectNotFound = 60, "object_not_found";
    /// The object is not as the caller demanded.
    PreconditionFailed = 61, "precondition_failed";
    /// Only the cluster itself writes to the bucket.
    BucketReserved = 62, "bucket_reserved";
    /// The shard holds as many objects as it may.
    TooManyObjects = 63, "too_many_objects";
    /// An object has the blob as a piece.
    BlobReferenced = 64, "blob_referenced";
    /// The token does not exist.
    TokenNotFound = 70, "token_not_found";
    /// The cluster holds as many tokens as it may.
    TooManyTokens = 71, "too_many_tokens";
    /// The first token is made once, and there are tokens.
    TokensExist = 72, "tokens_exist";
    /// No other admin token of the whole cluster lasts as long; make another first.
    LastAdmin = 73, "last_admin";
    /// Another change of membership is not finished.
    ChangePending = 80, "change_pending";
    /// No member has this id.
    NodeNotFound = 81, "node_not_found";
    /// A member has this id with another disk, or this address.
    NodeExists = 82, "node_exists";
    /// The id belonged to a node that left; ids are never used again.
    NodeRemoved = 83, "node_removed";
    /// Nobody would be left.
    LastVoter = 84, "last_voter";
    /// The cluster has as many members, or has removed as many, as it may.
    TooManyMembers = 85, "too_many_members";
    /// The node's program understands less than the cluster's level.
    NodeTooOld = 86, "node_too_old";
    /// The task's slot is in another shard, or on its way there.
    SlotMoved = 90, "slot_moved";
    /// The cluster is growing already.
    GrowthRunning = 91, "growth_running";
    /// The cluster has that many shards or more, or cannot have as many.
    BadShardCount = 92, "bad_shard_count";
    /// Another holds the lease.
    LeaseHeld = 100, "lease_held";
    /// Nobody holds the lease, or the caller has nothing of it.
    LeaseNotHeld = 101, "lease_not_held";
    /// The shard holds as many leases as it may.
    TooManyLeases = 102, "too_many_leases";
    /// As many wait for the lease as may.
    TooManyWaiters = 103, "too_many_waiters";
    /// The holder has the lease, or a place in its line, on other terms: another task, or another ttl in line.
    LeaseTerms = 104, "lease_terms";
    /// The job does not exist, or retention removed it.
    JobNotFound = 110, "job_not_found";
    /// The job has ended; its tasks are not tried again by themselves.
    JobFinished = 111, "job_finished";
    /// The shard holds as many jobs as it may.
    TooManyJobs = 112, "too_many_jobs";
    /// Another session works under this name.
    WorkerExists = 120, "worker_exists";
    /// No worker has this name.
    WorkerNotFound = 121, "worker_not_found";
    /// The session was removed; a new one may register.
    WorkerRemoved = 122, "worker_removed";
    /// The cluster records as many workers as it may.
    TooManyWorkers = 123, "too_many_workers";
    /// The namespace has as many unfinished tasks as its quota lets into the task's shard.
    NamespaceFull = 130, "namespace_full";
    /// The namespace has as many bytes of unfinished tasks as its quota lets into the task's shard.
    NamespaceBytes = 131, "namespace_bytes_full";
    /// The namespace has as many bytes of objects as its quota allows.
    NamespaceObjects = 132, "namespace_objects_full";
    /// As many namespaces have a quota as may.
    TooManyQuotas = 133, "too_many_quotas";
}

impl RefusalCode {
    /// Whether the same order may succeed later without any change by its sender. Such refusals are
    /// not remembered, so that a retry under the same request id is judged afresh.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::QueueFull
                | Self::DeadFull
                | Self::TooManyQueues
                | Self::TooManyLabelSets
                | Self::OutboxFull
                | Self::OutboxGap
                | Self::TooManyVoids
                | Self::TooManySchedules
                | Self::TooManyObjects
                | Self::TooManyTokens
                | Self::TooManyJobs
                | Self::SlotMoved
                | Self::TooManyLeases
                | Self::TooManyWaiters
                | Self::TooManyWorkers
                | Self::NamespaceFull
                | Self::NamespaceBytes
                | Self::NamespaceObjects
                | Self::TooManyQuotas
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_numbers_return() {
        for (position, code) in RefusalCode::ALL.iter().enumerate() {
            assert_eq!(RefusalCode::from_number(*code as u8), Some(*code));
            let others = &RefusalCode::ALL[position + 1..];
            assert!(others.iter().all(|other| other.as_str() != code.as_str()));
        }
        assert_eq!(RefusalCode::from_number(0), None);
    }
}
