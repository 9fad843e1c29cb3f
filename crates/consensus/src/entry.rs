//! One log entry, and its translation to and from the engine's form.
//!
//! Promises: payloads are shared (`Bytes`), never copied, in both directions.

use bytes::Bytes;
use raft::eraftpb;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// Data for the state machine; empty data is a leader's first entry.
    Normal = 0,
    /// A membership change: `context` holds a [`crate::ChangeStep`].
    Change = 1,
}

impl EntryKind {
    /// The kind with this stable number.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(EntryKind::Normal),
            1 => Some(EntryKind::Change),
            _ => None,
        }
    }

    /// The stable number of this kind, for logs and frames.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// One entry of a shard's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Term of the leader that wrote it.
    pub term: u64,
    /// Position in the log, counted from 1.
    pub index: u64,
    /// What it is for.
    pub kind: EntryKind,
    /// Payload for the state machine.
    pub data: Bytes,
    /// Payload for consensus itself; empty for normal entries.
    pub context: Bytes,
}

impl Entry {
    /// Bytes that this entry occupies in memory and on the wire, roughly.
    pub fn weight(&self) -> u64 {
        weight(self.data.len(), self.context.len())
    }

    pub(crate) fn from_engine(entry: &eraftpb::Entry) -> Self {
        let kind = match entry.get_entry_type() {
            eraftpb::EntryType::EntryNormal => EntryKind::Normal,
            _ => EntryKind::Change,
        };
        Entry {
            term: entry.term,
            index: entry.index,
            kind,
            data: entry.data.clone(),
            context: entry.context.clone(),
        }
    }

    pub(crate) fn into_engine(self) -> eraftpb::Entry {
        eraftpb::Entry {
            entry_type: match self.kind {
                EntryKind::Normal => eraftpb::EntryType::EntryNormal,
                EntryKind::Change => eraftpb::EntryType::EntryConfChangeV2,
            },
            term: self.term,
            index: self.index,
            data: self.data,
            context: self.context,
            ..Default::default()
        }
    }
}

/// Bytes that the engine's form of an entry occupies, roughly.
pub(crate) fn engine_weight(entry: &eraftpb::Entry) -> u64 {
    weight(entry.data.len(), entry.context.len())
}

fn weight(data: usize, context: usize) -> u64 {
    const HEADER: u64 = 24;
    HEADER + data as u64 + context as u64
}
