//! Whether states of different shards, taken at about the same time, belong together.

use super::Outbox;
use crate::{Frozen, ShardId};

impl Outbox {
    /// The highest number to a target that was taken off its line.
    fn taken_off(&self, target: ShardId) -> u64 {
        self.lines.get(&target).map_or(0, |(last, items)| {
            items.front().map_or(*last, |first| first.sequence.saturating_sub(1))
        })
    }
}

/// Whether no message is missing on both sides: what a sender has forgotten, its receiver has applied. States are in
/// order of their shards, all of them.
pub fn messages_fit(states: &[Frozen]) -> bool {
    states.iter().enumerate().all(|(source, sender)| {
        states.iter().enumerate().all(|(target, receiver)| {
            let applied = receiver.core().inbox.get(&(source as ShardId)).copied().unwrap_or(0);
            sender.core().outbox.taken_off(target as ShardId) <= applied
        })
    })
}
