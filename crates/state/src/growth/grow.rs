//! `Grow`, and what shard 0 does until the growth is over: send settings, choose slots, flip the map.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Growth, GrowthView, Moving, NewShards, QueueCopy, Running};
use crate::hash::{RecordKind, digest_record, encode_into};
use crate::limits::{MOVES_IN_FLIGHT_MAX, SETTINGS_PER_MESSAGE_MAX, SHARDS_MAX};
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply, ShardId};

/// Raises the number of shards (shard 0).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Grow {
    /// Shards in the end.
    #[n(0)]
    pub shards: u16,
    /// First voters of the new shards.
    #[n(1)]
    pub voters: Vec<u64>,
}

impl Grow {
    /// Hash of what was asked for; the voters are the leader's addition.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(&self.shards.to_le_bytes(), 60)
    }
}

impl Shard {
    pub(crate) fn apply_grow(&mut self, batch: &mut Batch, order: Grow) -> Reply {
        match self.grow(batch, order) {
            Ok(slots) => Reply::Growing { shards: self.core.shards, slots },
            Err(code) => Reply::refused(code),
        }
    }

    fn grow(&mut self, batch: &mut Batch, order: Grow) -> Result<u16, RefusalCode> {
        let Some(map) = self.core.slot_map.as_ref().filter(|_| self.core.shard == 0) else {
            return Err(RefusalCode::WrongShard);
        };
        let from = self.core.shards;
        if self.growth_running().is_some() {
            return Err(RefusalCode::GrowthRunning);
        }
        if self.core.roster.as_deref().is_some_and(|roster| roster.change.is_some()) {
            return Err(RefusalCode::ChangePending);
        }
        if order.shards <= from || order.shards > SHARDS_MAX {
            return Err(RefusalCode::BadShardCount);
        }
        let members_max = self.core.limits.members_max as usize;
        if order.voters.is_empty() || order.voters.len() > members_max {
            return Err(RefusalCode::BadValue);
        }
        let slots = map.shares(order.shards).moves();
        let copies = self.settings_messages();
        let quotas = self.quota_messages();
        let messages = copies.len() * usize::from(order.shards - from)
            + quotas * usize::from(order.shards - 1);
        if self.core.outbox.len() + messages > self.core.limits.outbox_max as usize {
            return Err(RefusalCode::OutboxFull);
        }
        for target in from..order.shards {
            for message in &copies {
                self.put_message(batch, target, message.clone());
            }
        }
        let (settings, started_ms) = ((copies.len() + quotas) as u64, self.core.time_ms);
        self.core.shards = order.shards;
        self.share_quotas(batch);
        self.change_growth(|growth| {
            let voters = order.voters;
            growth.added.push(NewShards { first: from, end: order.shards, voters });
            let moving = Default::default();
            growth.running = Some(Running { from, slots, moved: 0, moving, settings, started_ms });
        });
        batch.tell(Effect::Grew);
        Ok(slots)
    }

    /// Whether there may be such a shard. Only shard 0 knows how many there are; the others hear of a new one when it
    /// speaks, or when a slot goes there.
    pub(crate) fn may_exist(&self, shard: ShardId) -> bool {
        shard < self.core.shards || (self.core.shard != 0 && shard < SHARDS_MAX)
    }

    /// There is such a shard. Without this, what a new shard says to an old one would be refused for ever, and an old one
    /// would keep what it has to say to a new one.
    pub(crate) fn learn_shard(&mut self, shard: ShardId) {
        self.core.shards = self.core.shards.max(shard + 1);
    }

    /// The settings of all queues; at least one message, whose acknowledgement shows that its shard works.
    fn settings_messages(&self) -> Vec<Message> {
        let set = self.core.queues.iter().filter(|record| record.settings.version > 0);
        let copies: Vec<QueueCopy> = set
            .map(|record| QueueCopy {
                namespace: record.namespace.clone(),
                queue: record.name.clone(),
                settings: record.settings.clone(),
            })
            .collect();
        if copies.is_empty() {
            return vec![Message::Settings { queues: copies }];
        }
        let chunks = copies.chunks(SETTINGS_PER_MESSAGE_MAX);
        chunks.map(|chunk| Message::Settings { queues: chunk.to_vec() }).collect()
    }

    /// New shards have acknowledged something: once all have the settings, slots begin to move.
    pub(crate) fn growth_acked(&mut self, batch: &mut Batch) {
        let Some(running) = self.growth_running().filter(|running| running.settings > 0) else {
            return;
        };
        let (from, settings) = (running.from, running.settings);
        let has_them = |target: ShardId| {
            let first = self.core.outbox.first_waiting(target);
            first.is_none_or(|sequence| sequence > settings)
        };
        if (from..self.core.shards).all(has_them) {
            self.change_running(|running| running.settings = 0);
            self.start_moves(batch);
        }
    }

    /// A slot has arrived at its target.
    pub(crate) fn slot_settled(&mut self, batch: &mut Batch, slot: u16, has_objects: bool) {
        let source = self.core.slot_map.as_ref().map(|map| map.shard(slot));
        match source.filter(|_| has_objects) {
            Some(source) if source == self.core.shard => self.forget_slot(slot),
            Some(source) => {
                self.put_message(batch, source, Message::Forget { slot });
            }
            None => {}
        }
        self.change_running(|running| {
            if let Some(moving) = running.moving.iter_mut().find(|moving| moving.slot == slot) {
                moving.settled = true;
            }
        });
        let settled = |running: &Running| running.moving.front().is_some_and(|first| first.settled);
        while self.growth_running().is_some_and(settled) {
            let mut first = None;
            self.change_running(|running| {
                first = running.moving.pop_front();
                running.moved += 1;
            });
            if let Some(Moving { slot, target, .. }) = first {
                self.flip(slot, target);
            }
        }
        self.start_moves(batch);
    }

    fn flip(&mut self, slot: u16, target: ShardId) {
        let Some(mut map) = self.core.slot_map.take() else {
            return;
        };
        self.core.hash.remove(map.digest_around(slot));
        map.assign(slot, target);
        self.core.hash.add(map.digest_around(slot));
        self.core.slot_map = Some(map);
    }

    /// Sends further slots on their way, or ends the growth.
    fn start_moves(&mut self, batch: &mut Batch) {
        let Some(mut planned) = self.core.slot_map.clone() else {
            return;
        };
        for moving in self.growth_running().iter().flat_map(|running| &running.moving) {
            planned.assign(moving.slot, moving.target);
        }
        let mut shares = planned.shares(self.core.shards);
        while let Some(running) = self.growth_running() {
            let next = shares.next_move();
            let Some((source, target)) = next else {
                if running.moving.is_empty() {
                    self.change_growth(|growth| growth.running = None);
                }
                return;
            };
            if running.moving.len() >= MOVES_IN_FLIGHT_MAX {
                return;
            }
            let Some(slot) = planned.first_of(source) else {
                return;
            };
            planned.assign(slot, target);
            shares.give(source, target);
            // Whoever gives next is another shard, unless this one has more to give.
            let more = shares.gives_again(source);
            let map_version = planned.version();
            self.change_running(|running| {
                running.moving.push_back(Moving { slot, target, settled: false });
            });
            if source == self.core.shard {
                // Its own slot and another's shard: nothing that could be refused.
                let _ = self.leave_slot(batch, (slot, target), map_version, !more);
            } else {
                let message = Message::Leave { slot, target, map_version, last: !more };
                self.put_message(batch, source, message);
            }
        }
    }

    pub(crate) fn growth_running(&self) -> Option<&Running> {
        self.core.growth.as_ref()?.running.as_ref()
    }

    fn change_running(&mut self, change: impl FnOnce(&mut Running)) {
        self.change_growth(|growth| {
            if let Some(running) = &mut growth.running {
                change(running);
            }
        });
    }

    /// A new cluster begins with this state: whoever joins it must not take old nodes for voters.
    pub(crate) fn forget_first_voters(&mut self) {
        if self.core.growth.is_some() {
            self.change_growth(|growth| {
                growth.added.iter_mut().for_each(|added| added.voters.clear());
            });
        }
    }

    fn change_growth(&mut self, change: impl FnOnce(&mut Growth)) {
        let mut growth = match self.core.growth.take() {
            Some(growth) => {
                self.core.hash.remove(digest_record(RecordKind::Growth, &*growth));
                Arc::unwrap_or_clone(growth)
            }
            None => Growth::default(),
        };
        change(&mut growth);
        self.core.hash.add(digest_record(RecordKind::Growth, &growth));
        self.core.growth = Some(Arc::new(growth));
    }

    /// Takes the settings of queues in, in a new shard.
    pub(crate) fn take_settings(
        &mut self,
        batch: &mut Batch,
        copies: &[QueueCopy],
    ) -> Result<(), RefusalCode> {
        if copies.iter().any(|copy| !copy.settings.is_valid(&self.core.limits)) {
            return Err(RefusalCode::BadValue);
        }
        for copy in copies {
            let queue = self.open_queue_unbounded(&copy.namespace, &copy.queue);
            let current = self.core.queues[queue as usize].settings.version;
            if copy.settings.version > current {
                self.store_settings(batch, queue, copy.settings.clone());
            }
        }
        Ok(())
    }

    /// What shard 0 remembers of growth; none before the first.
    pub fn growth(&self) -> Option<&Growth> {
        self.core.growth.as_deref()
    }

    /// The growth that runs.
    pub fn growth_view(&self) -> Option<GrowthView> {
        let running = self.growth_running()?;
        Some(GrowthView {
            from: running.from,
            to: self.core.shards,
            slots: running.slots,
            moved: running.moved,
            started_ms: running.started_ms,
        })
    }
}

impl Message {
    /// Bytes of a list of settings, for the size of a delivery.
    pub(crate) fn settings_weight(queues: &[QueueCopy]) -> usize {
        let mut bytes = Vec::new();
        queues.iter().for_each(|copy| encode_into(copy, &mut bytes));
        bytes.len()
    }
}
