//! All command kinds. Numbers are stable for ever; a kind that a node does not know is refused with
//! `bad_command`, the same on every node. Each verb's struct and rule live in its own file.

use minicbor::{Decode, Encode};

use crate::{
    Acked, AcquireLease, AddToken, Cancel, CancelJob, ChangeMembers, Checkpoint, Claim, Collect,
    Complete, DeleteObject, DeleteSchedule, Deliver, DrainWorker, DropTask, Duplicate, Enqueue,
    Expire, ExpireLease, Fail, Fire, Grow, KeepDead, Namespace, PutObject, RaiseEpoch, RaiseLevel,
    Refound, RegisterWorker, ReleaseLease, RemoveWorker, RequestKey, Retry, RevokeToken,
    SetMembers, SetQueue, SetQuota, SetSchedule, SettleChange, SteerMember, SubmitJob, Sweep,
    TuneElections, Unclaim, Void,
};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Command {
    /// Add a task.
    #[n(1)]
    Enqueue(#[n(0)] Enqueue),
    /// Hand ready tasks to a worker.
    #[n(2)]
    Claim(#[n(0)] Claim),
    /// Settle a task as done.
    #[n(3)]
    Complete(#[n(0)] Complete),
    /// End an attempt as failed.
    #[n(4)]
    Fail(#[n(0)] Fail),
    /// End a claim whose lifetime is over.
    #[n(5)]
    Expire(#[n(0)] Expire),
    /// Return a claim that never reached its worker.
    #[n(6)]
    Unclaim(#[n(0)] Unclaim),
    /// Settle a task as cancelled.
    #[n(7)]
    Cancel(#[n(0)] Cancel),
    /// Change a queue's settings (shard 0).
    #[n(8)]
    SetQueue(#[n(0)] SetQueue),
    /// Apply a message of another shard.
    #[n(9)]
    Deliver(#[n(0)] Deliver),
    /// Remove messages that their target has applied.
    #[n(10)]
    Acked(#[n(0)] Acked),
    /// Record the cluster's members (shard 0).
    #[n(11)]
    SetMembers(#[n(0)] SetMembers),
    /// Raise the restore epoch, so that new fences exceed all older ones.
    #[n(12)]
    RaiseEpoch(#[n(0)] RaiseEpoch),
    /// Give a dead or cancelled task fresh attempts.
    #[n(20)]
    Retry(#[n(0)] Retry),
    /// Remove a finished task.
    #[n(21)]
    Drop(#[n(0)] DropTask),
    /// One bounded step of a job on many tasks of a queue.
    #[n(22)]
    Sweep(#[n(0)] Sweep),
    /// Rule a request id out.
    #[n(23)]
    Void(#[n(0)] Void),
    /// Keep how far an attempt has come.
    #[n(24)]
    Checkpoint(#[n(0)] Checkpoint),
    /// Keep dead tasks apart from those that ended otherwise.
    #[n(25)]
    KeepDead(#[n(0)] KeepDead),
    /// Make or change a schedule (shard 0).
    #[n(40)]
    SetSchedule(#[n(0)] SetSchedule),
    /// Remove a schedule (shard 0).
    #[n(41)]
    DeleteSchedule(#[n(0)] DeleteSchedule),
    /// Decide an instant of a schedule (shard 0).
    #[n(42)]
    Fire(#[n(0)] Fire),
    /// Write an object.
    #[n(60)]
    PutObject(#[n(0)] PutObject),
    /// Remove an object.
    #[n(61)]
    DeleteObject(#[n(0)] DeleteObject),
    /// Announce that a node removes blobs (shard 0).
    #[n(62)]
    Collect(#[n(0)] Collect),
    /// Make a token (shard 0).
    #[n(70)]
    AddToken(#[n(0)] AddToken),
    /// End a token (shard 0).
    #[n(71)]
    RevokeToken(#[n(0)] RevokeToken),
    /// Begin a change of membership (shard 0).
    #[n(80)]
    ChangeMembers(#[n(0)] ChangeMembers),
    /// End a change that every shard has followed (shard 0).
    #[n(81)]
    SettleChange(#[n(0)] SettleChange),
    /// Steer leadership towards or away from a member (shard 0).
    #[n(82)]
    SteerMember(#[n(0)] SteerMember),
    /// Begin a new cluster with this state.
    #[n(83)]
    Refound(#[n(0)] Refound),
    /// Raise the cluster's level (shard 0).
    #[n(84)]
    RaiseLevel(#[n(0)] RaiseLevel),
    /// Change how long silence lasts before an election (shard 0).
    #[n(85)]
    TuneElections(#[n(0)] TuneElections),
    /// Raise the number of shards (shard 0).
    #[n(90)]
    Grow(#[n(0)] Grow),
    /// Take a lease, or a place in its line.
    #[n(100)]
    AcquireLease(#[n(0)] AcquireLease),
    /// Give a lease back, or a place in its line.
    #[n(101)]
    ReleaseLease(#[n(0)] ReleaseLease),
    /// End a holding or a wait whose lifetime is over.
    #[n(102)]
    ExpireLease(#[n(0)] ExpireLease),
    /// Accept a job.
    #[n(110)]
    SubmitJob(#[n(0)] SubmitJob),
    /// End a job.
    #[n(111)]
    CancelJob(#[n(0)] CancelJob),
    /// Let a slow task of a job run a second time, beside the first.
    #[n(112)]
    Duplicate(#[n(0)] Duplicate),
    /// Record a worker (shard 0).
    #[n(120)]
    RegisterWorker(#[n(0)] RegisterWorker),
    /// Let a worker leave (shard 0).
    #[n(121)]
    DrainWorker(#[n(0)] DrainWorker),
    /// End a worker's session (shard 0).
    #[n(122)]
    RemoveWorker(#[n(0)] RemoveWorker),
    /// Change a namespace's quota (shard 0).
    #[n(130)]
    SetQuota(#[n(0)] SetQuota),
}

impl Command {
    /// Whether its purpose is to have more stored: what a disk without room can do without. What is under way is not: it
    /// ends by more commands, which take room first and give it back later.
    pub fn adds(&self) -> bool {
        matches!(
            self,
            Command::Enqueue(_)
                | Command::SubmitJob(_)
                | Command::PutObject(_)
                | Command::SetSchedule(_)
                | Command::Grow(_)
        )
    }

    /// Hash of the body by which a resend is known for the same, for verbs that are remembered by their request id.
    /// None: repeating the verb changes nothing (fences and versions see to it), it carries no request id, or it is
    /// remembered by its own rule.
    pub(crate) fn remembered_by(&self) -> Option<u64> {
        match self {
            Command::Cancel(verb) => Some(verb.body_hash()),
            Command::SetQueue(verb) => Some(verb.body_hash()),
            Command::Retry(verb) => Some(verb.body_hash()),
            Command::Drop(verb) => Some(verb.body_hash()),
            Command::Sweep(verb) => Some(verb.body_hash()),
            Command::SetSchedule(verb) => Some(verb.body_hash()),
            Command::DeleteSchedule(verb) => Some(verb.body_hash()),
            Command::PutObject(verb) => Some(verb.body_hash()),
            Command::DeleteObject(verb) => Some(verb.body_hash()),
            Command::Grow(verb) => Some(verb.body_hash()),
            Command::ReleaseLease(verb) => Some(verb.body_hash()),
            Command::SubmitJob(verb) => Some(verb.body_hash()),
            Command::CancelJob(verb) => Some(verb.body_hash()),
            Command::Enqueue(_) | Command::Claim(_) => None,
            Command::Complete(_) | Command::Fail(_) | Command::Expire(_) | Command::Unclaim(_) => {
                None
            }
            Command::Deliver(_) | Command::Acked(_) | Command::Void(_) | Command::Fire(_) => None,
            Command::SetMembers(_) | Command::ChangeMembers(_) | Command::SettleChange(_) => None,
            Command::SteerMember(_) | Command::Refound(_) | Command::RaiseEpoch(_) => None,
            Command::RaiseLevel(_) | Command::TuneElections(_) => None,
            Command::Collect(_) | Command::AddToken(_) | Command::RevokeToken(_) => None,
            Command::AcquireLease(_) | Command::ExpireLease(_) => None,
            Command::RegisterWorker(_) | Command::DrainWorker(_) | Command::RemoveWorker(_) => None,
            Command::SetQuota(_) | Command::Duplicate(_) | Command::Checkpoint(_) => None,
            Command::KeepDead(_) => None,
        }
    }

    /// The level that understands this command. Every verb has one: what is new is of the level that this program raises to
    /// (`LEVEL`), and so is a verb that bears a field which older programs would pass over.
    pub fn level(&self) -> u32 {
        match self {
            Command::Enqueue(verb) => verb.level(),
            Command::Complete(verb) => verb.level(),
            Command::Claim(verb) => verb.level(),
            Command::Fail(_) => 0,
            Command::Expire(_) | Command::Unclaim(_) | Command::Cancel(_) => 0,
            Command::Retry(_) | Command::Drop(_) | Command::Sweep(_) | Command::Void(_) => 0,
            Command::SetQueue(verb) => verb.level(),
            Command::Acked(_) => 0,
            Command::Deliver(verb) => verb.message.level(),
            Command::SetMembers(_) | Command::ChangeMembers(_) | Command::SettleChange(_) => 0,
            Command::SteerMember(_) | Command::Refound(_) | Command::RaiseEpoch(_) => 0,
            Command::SetSchedule(verb) => verb.spec.as_ref().map_or(0, |spec| spec.level()),
            Command::DeleteSchedule(_) | Command::Fire(_) => 0,
            Command::PutObject(verb) => verb.level(),
            Command::DeleteObject(_) | Command::Collect(_) => 0,
            Command::RevokeToken(verb) => verb.level(),
            Command::AddToken(_) | Command::Grow(_) => 0,
            Command::AcquireLease(_) | Command::ReleaseLease(_) | Command::ExpireLease(_) => 0,
            Command::SubmitJob(verb) => verb.level(),
            Command::CancelJob(_) => 0,
            Command::RegisterWorker(_) | Command::DrainWorker(_) | Command::RemoveWorker(_) => 0,
            Command::RaiseLevel(_) | Command::SetQuota(_) | Command::TuneElections(_) => 1,
            Command::Duplicate(_) | Command::Checkpoint(_) | Command::KeepDead(_) => 1,
        }
    }
}

/// One command with its owner and, for client requests, its idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Order {
    /// Owner of what the command names.
    #[n(0)]
    pub namespace: Namespace,
    /// Absent for orders of the cluster itself.
    #[n(1)]
    pub request: Option<RequestKey>,
    /// What to do.
    #[n(2)]
    pub command: Command,
}
