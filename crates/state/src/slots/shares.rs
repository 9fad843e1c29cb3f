//! How many slots each shard holds, and who gives to whom until the shares are equal.
//!
//! Promise: the order depends on the counts alone, so every node plans the same moves, and a plan of thousands of moves
//! is counted without touching the map. Which slot a giver gives is the map's affair.

use std::cmp::Reverse;

use crate::ShardId;

/// Slots held, by shard.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    counts: Vec<u16>,
}

impl Shares {
    /// The shares of a map's slots; each slot's shard is below `shards`.
    pub(super) fn of(slots: &[ShardId], shards: u16) -> Shares {
        let mut counts = vec![0u16; usize::from(shards)];
        for shard in slots {
            // Thousands of slots at each step of a growth: no bounds to check, and no more than `SLOTS` to count.
            if let Some(count) = counts.get_mut(usize::from(*shard)) {
                *count = count.wrapping_add(1);
            }
        }
        Shares { counts }
    }

    /// Who gives the next slot and who takes it: the fullest to the emptiest; none once no shard holds two more than
    /// another.
    pub(crate) fn next_move(&self) -> Option<(ShardId, ShardId)> {
        let held = |shard: &ShardId| self.counts[usize::from(*shard)];
        let shards = 0..self.counts.len() as u16;
        let fullest = shards.clone().max_by_key(|shard| (held(shard), Reverse(*shard)))?;
        let emptiest = shards.min_by_key(|shard| (held(shard), *shard))?;
        (held(&fullest) >= held(&emptiest) + 2).then_some((fullest, emptiest))
    }

    /// A slot went from one shard to another.
    pub(crate) fn give(&mut self, giver: ShardId, taker: ShardId) {
        self.counts[usize::from(giver)] -= 1;
        self.counts[usize::from(taker)] += 1;
    }

    /// How many slots must move until the shares are equal.
    pub(crate) fn moves(&self) -> u16 {
        let (mut rest, mut moves) = (self.clone(), 0);
        while let Some((giver, taker)) = rest.next_move() {
            rest.give(giver, taker);
            moves += 1;
        }
        moves
    }

    /// Whether a shard will have to give another slot.
    pub(crate) fn gives_again(&self, shard: ShardId) -> bool {
        let mut rest = self.clone();
        // Each shard gives in turn, so that a few steps tell.
        for _ in 0..self.counts.len() {
            let Some((giver, taker)) = rest.next_move() else {
                return false;
            };
            if giver == shard {
                return true;
            }
            rest.give(giver, taker);
        }
        false
    }
}
