//! Messages between the members of a shard.
//!
//! Promises: a [`Message`] is opaque outside this crate and names its shard; only the kinds that peers may send
//! each other have an encoding. Leaves out: the connection, its batching and its checks.

mod decode;
mod encode;

use bytes::Bytes;
use raft::eraftpb;
use raft::eraftpb::MessageType;

use crate::conf::Conf;
use crate::config::{NodeId, ShardId, Start};

/// What a message asks or answers. Numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageKind {
    /// A leader appends entries.
    Append = 1,
    /// Answer to an append or a snapshot.
    AppendAnswer = 2,
    /// A candidate asks for a vote.
    Vote = 3,
    /// Answer to a vote request.
    VoteAnswer = 4,
    /// A node asks whether it would get a vote.
    PreVote = 5,
    /// Answer to a pre-vote request.
    PreVoteAnswer = 6,
    /// A leader points to a snapshot; the data travels elsewhere.
    Snapshot = 7,
    /// A leader is alive.
    Heartbeat = 8,
    /// Answer to a heartbeat.
    HeartbeatAnswer = 9,
    /// A leader asks a follower to campaign at once.
    TimeoutNow = 10,
}

const KINDS: [(MessageKind, MessageType); 10] = [
    (MessageKind::Append, MessageType::MsgAppend),
    (MessageKind::AppendAnswer, MessageType::MsgAppendResponse),
    (MessageKind::Vote, MessageType::MsgRequestVote),
    (MessageKind::VoteAnswer, MessageType::MsgRequestVoteResponse),
    (MessageKind::PreVote, MessageType::MsgRequestPreVote),
    (MessageKind::PreVoteAnswer, MessageType::MsgRequestPreVoteResponse),
    (MessageKind::Snapshot, MessageType::MsgSnapshot),
    (MessageKind::Heartbeat, MessageType::MsgHeartbeat),
    (MessageKind::HeartbeatAnswer, MessageType::MsgHeartbeatResponse),
    (MessageKind::TimeoutNow, MessageType::MsgTimeoutNow),
];

impl MessageKind {
    fn from_number(number: u8) -> Option<Self> {
        KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind as u8 == number)
    }

    fn from_engine(engine: MessageType) -> Option<Self> {
        KINDS.iter().find(|(_, other)| *other == engine).map(|(kind, _)| *kind)
    }

    fn to_engine(self) -> MessageType {
        KINDS[self as usize - 1].1
    }

    /// Whether only a leader sends it: it promises nothing about the sender's disk.
    pub(crate) fn is_from_leader(self) -> bool {
        use MessageKind::{Append, Heartbeat, Snapshot, TimeoutNow};
        matches!(self, Append | Heartbeat | Snapshot | TimeoutNow)
    }
}

/// A message from one member of a shard to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub(crate) shard: ShardId,
    pub(crate) kind: MessageKind,
    /// The sender's log is damaged: what it acknowledged before no longer counts.
    pub(crate) is_repairing: bool,
    pub(crate) inner: eraftpb::Message,
}

impl Message {
    /// Wraps a message of the engine, if peers may see its kind.
    pub(crate) fn from_engine(
        shard: ShardId,
        is_repairing: bool,
        inner: eraftpb::Message,
    ) -> Option<Self> {
        let kind = MessageKind::from_engine(inner.get_msg_type())?;
        Some(Message { shard, kind, is_repairing, inner })
    }

    /// The shard it belongs to.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// What it asks or answers.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// The sender.
    pub fn from(&self) -> NodeId {
        self.inner.from
    }

    /// The receiver.
    pub fn to(&self) -> NodeId {
        self.inner.to
    }

    /// The term that it speaks of.
    pub fn term(&self) -> u64 {
        self.inner.term
    }

    /// Whether it is a refusal.
    pub fn is_refusal(&self) -> bool {
        self.inner.reject
    }

    /// The index that it speaks of: before the first entry of an append, up to which an answer acknowledges.
    pub fn index(&self) -> u64 {
        self.inner.index
    }

    /// Number of entries it carries.
    pub fn entry_count(&self) -> usize {
        self.inner.entries.len()
    }

    /// The point and membership of a snapshot message.
    pub fn snapshot(&self) -> Option<(Start, Conf)> {
        if self.kind != MessageKind::Snapshot {
            return None;
        }
        let meta = self.inner.get_snapshot().get_metadata();
        let start = Start { index: meta.index, term: meta.term };
        Some((start, Conf::from_engine(meta.get_conf_state())))
    }

    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::encode(self, out);
    }

    /// Reads an encoding; entries share the memory of `bytes`.
    #[expect(clippy::needless_pass_by_value, reason = "the message keeps the memory of its bytes")]
    pub fn decode(bytes: Bytes) -> Result<Self, crate::DecodeError> {
        decode::decode(&bytes)
    }
}

#[cfg(test)]
#[path = "codec_test.rs"]
mod codec_test;
