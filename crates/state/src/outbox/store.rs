//! The waiting messages, per target, and the highest number applied, per source.

use std::collections::{BTreeMap, VecDeque};

use minicbor::{Decode, Encode};

use super::Message;
use crate::hash::{RecordKind, digest_record};
use crate::shard::{Batch, Shard};
use crate::{Effect, ShardId};

/// One waiting message.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OutboxItem {
    /// Receiving shard.
    #[n(0)]
    pub target: ShardId,
    /// Number in the line to that shard, from 1 without gaps.
    #[n(1)]
    pub sequence: u64,
    /// What to tell it.
    #[n(2)]
    pub message: Message,
}

/// How far the line to one target has come.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct OutboxLine {
    #[n(0)]
    pub(crate) target: ShardId,
    #[n(1)]
    pub(crate) last: u64,
}

/// Highest number applied from one source.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Inbox {
    #[n(0)]
    pub(crate) source: ShardId,
    #[n(1)]
    pub(crate) applied: u64,
}

/// All waiting messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    pub(super) lines: BTreeMap<ShardId, (u64, VecDeque<OutboxItem>)>,
    length: usize,
}

impl Outbox {
    /// Number of waiting messages.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Waiting messages by target and number.
    pub(crate) fn items(&self) -> impl Iterator<Item = &OutboxItem> {
        self.lines.values().flat_map(|(_, items)| items)
    }

    /// Number of the first message that waits for a target.
    pub(crate) fn first_waiting(&self, target: ShardId) -> Option<u64> {
        self.lines.get(&target)?.1.front().map(|item| item.sequence)
    }

    /// How far each line has come.
    pub(crate) fn line_records(&self) -> impl Iterator<Item = OutboxLine> + '_ {
        self.lines.iter().map(|(target, (last, _))| OutboxLine { target: *target, last: *last })
    }

    /// Rebuilds a line from a snapshot; false if it is there already.
    pub(crate) fn restore_line(&mut self, line: &OutboxLine) -> bool {
        self.lines.insert(line.target, (line.last, VecDeque::new())).is_none()
    }

    /// Rebuilds a waiting message; false if it does not continue its line.
    pub(crate) fn restore_item(&mut self, item: OutboxItem) -> bool {
        let Some((last, items)) = self.lines.get_mut(&item.target) else {
            return false;
        };
        let follows =
            items.back().is_none_or(|before| before.sequence.checked_add(1) == Some(item.sequence));
        if !follows || item.sequence > *last || item.sequence == 0 {
            return false;
        }
        items.push_back(item);
        self.length += 1;
        true
    }

    /// Whether every line ends with its highest number, as lines without gaps do.
    pub(crate) fn is_whole(&self) -> bool {
        self.lines
            .values()
            .all(|(last, items)| items.back().is_none_or(|item| item.sequence == *last))
    }
}

impl Shard {
    /// Appends a message to the line of a target; gives its number.
    pub(crate) fn put_message(
        &mut self,
        batch: &mut Batch,
        target: ShardId,
        message: Message,
    ) -> u64 {
        let (last, items) = self.core.outbox.lines.entry(target).or_default();
        if *last > 0 {
            let line = OutboxLine { target, last: *last };
            self.core.hash.remove(digest_record(RecordKind::OutboxLine, &line));
        }
        *last += 1;
        let line = OutboxLine { target, last: *last };
        let item = OutboxItem { target, sequence: *last, message };
        self.core.hash.add(digest_record(RecordKind::OutboxLine, &line));
        self.core.hash.add(digest_record(RecordKind::OutboxItem, &item));
        self.index.refer(item.message.pieces());
        batch.tell(Effect::OutboxPut { target, sequence: *last });
        items.push_back(item);
        self.core.outbox.length += 1;
        line.last
    }

    /// Removes the messages to a target up to a number.
    pub(crate) fn drop_messages(&mut self, target: ShardId, sequence: u64) {
        let Some((_, items)) = self.core.outbox.lines.get_mut(&target) else {
            return;
        };
        while items.front().is_some_and(|item| item.sequence <= sequence) {
            if let Some(item) = items.pop_front() {
                self.core.hash.remove(digest_record(RecordKind::OutboxItem, &item));
                self.core.outbox.length -= 1;
                self.index.let_refer(item.message.pieces());
            }
        }
    }

    /// Messages waiting for a target, from a number on, at most `limit`.
    pub fn outbox_pending(
        &self,
        target: ShardId,
        from_sequence: u64,
        limit: usize,
    ) -> Vec<OutboxItem> {
        self.outbox_from(target, from_sequence).take(limit).cloned().collect()
    }

    /// The same, but settings alone: they may overtake what cannot be taken yet.
    pub fn outbox_settings(
        &self,
        target: ShardId,
        from_sequence: u64,
        limit: usize,
    ) -> Vec<OutboxItem> {
        let items = self.outbox_from(target, from_sequence);
        items.filter(|item| item.message.may_overtake()).take(limit).cloned().collect()
    }

    fn outbox_from(
        &self,
        target: ShardId,
        from_sequence: u64,
    ) -> impl Iterator<Item = &OutboxItem> {
        let line = self.core.outbox.lines.get(&target);
        let items = line.into_iter().flat_map(|(_, items)| items);
        items.filter(move |item| item.sequence >= from_sequence)
    }

    /// Targets that have messages waiting.
    pub fn outbox_targets(&self) -> impl Iterator<Item = ShardId> + '_ {
        let lines = self.core.outbox.lines.iter();
        lines.filter(|(_, (_, items))| !items.is_empty()).map(|(target, _)| *target)
    }
}
