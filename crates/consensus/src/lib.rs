//! Who may write next: many replicated logs of one node as a step function.
//!
//! Promises: [`Consensus`] takes calls (time, messages, proposals, disk done) and gives values ([`Outbox`]); it
//! reads no clock, owns no thread or file, and equal seeds with equal calls give equal outputs. The Raft engine
//! inside is `raft` 0.7; it appears nowhere in the public interface, so that it can be replaced. Messages use
//! our own codec; the engine's protobuf parser never sees a byte.
//!
//! Invariants that callers rely on:
//! - nothing that promises durability (votes, append answers) is handed out before `persisted` covers it;
//! - entries are handed out in order, once per process, only when committed and locally durable;
//! - a read is answered only after a majority confirmed the leader after the read arrived;
//! - a shard whose log is damaged neither votes nor campaigns until a leader has repaired it.
//!
//! Where logs live in a database instead, `lease` takes the engine's place behind the same calls: the answers of the
//! database come in, questions for it go out.
//!
//! Leaves out: what entries mean, where bytes live, how messages travel, when to take snapshots, and which
//! nodes exist; all of that is told to it.

mod conf;
mod config;
mod consensus;
mod engine;
mod entry;
mod errors;
pub mod lease;
mod log;
mod message;
mod outbox;
pub mod planted;
mod shard;
mod wire;

pub use conf::{Change, ChangeStep, Conf};
pub use config::{BOOTSTRAP, Config, NodeId, Recovered, ShardId, Start};
pub use consensus::Consensus;
pub use entry::{Entry, EntryKind};
pub use errors::{ChangeError, NotLeader, OpenError, TransferError};
pub use message::{Message, MessageKind};
pub use outbox::{Ballot, Fault, Io, IoRecord, Outbox, Reason, Role, RoleChange, SnapshotNeed};
pub use shard::{PeerProgress, PeerState, Standing};
pub use wire::DecodeError;
