//! Whether disks stand still or are full: this node's own by the batches that wait for it and by what its log says, its
//! peers' by what they say.
//!
//! Promise: a node whose disk has shown no progress for a second says so to all peers until it moves again, and whoever
//! hears it gives that node no leadership meanwhile. Nothing is sent while disks are well, and nothing is known of a disk
//! that nobody writes to.
//!
//! A shard takes nothing new once it cannot do without disks that have hardly any room left (F-12): what is under way
//! needs the rest.

use ikada_consensus::NodeId;
use ikada_state::{Command, Order, ShardId};

use crate::output::Now;
use crate::peer::PeerMessage;
use crate::replica::Replica;

/// A disk without progress for this long stands still: as long as a leader waits for its own.
pub const DISK_STILL_MS: u64 = 1_000;
/// A peer's word counts for so long; it is repeated several times in that time.
const WORD_MS: u64 = 3_000;

/// This node's disk.
#[derive(Debug, Default)]
pub(crate) struct DiskWatch {
    /// The newest batch that waits for it, and since when it shows no progress.
    waiting: Option<(u64, u64)>,
    is_still: bool,
    /// The log has no room beyond what it holds already.
    pub(crate) is_low: bool,
}

impl DiskWatch {
    /// A batch leaves for the disk.
    pub(crate) fn handed_over(&mut self, sequence: u64, now: Now) {
        self.waiting.get_or_insert((sequence, now.mono_ms)).0 = sequence;
    }

    /// All batches up to this one are durable.
    pub(crate) fn persisted(&mut self, sequence: u64, now: Now) {
        self.waiting = self.waiting.filter(|(newest, _)| sequence < *newest);
        if let Some((_, since_ms)) = &mut self.waiting {
            *since_ms = now.mono_ms;
        }
    }

    fn look(&mut self, now: Now) -> bool {
        let is_late = |since_ms: u64| now.mono_ms.saturating_sub(since_ms) >= DISK_STILL_MS;
        self.is_still = self.waiting.is_some_and(|(_, since_ms)| is_late(since_ms));
        self.is_still
    }
}

impl Replica {
    /// Looks at the own disk, says what is to be said, and forgets what peers said long ago.
    pub(crate) fn watch_disks(&mut self, now: Now) {
        let is_still = self.disk.look(now);
        for peer in self.peers.values_mut() {
            let counts = |until: &u64| now.mono_ms < *until;
            peer.disk_still_until_ms = peer.disk_still_until_ms.filter(counts);
            peer.disk_low_until_ms = peer.disk_low_until_ms.filter(counts);
        }
        // Said to those whose connection is down as well: ours may be the ear that is deaf, not theirs.
        if is_still {
            self.send_all(&PeerMessage::DiskStill);
        }
        if self.disk.is_low {
            self.send_all(&PeerMessage::DiskLow);
        }
    }

    fn send_all(&mut self, message: &PeerMessage) {
        for node in self.peers.keys().copied().collect::<Vec<_>>() {
            self.send(node, message);
        }
    }

    /// A peer's disk has hardly any room left.
    pub(crate) fn disk_low(&mut self, from: NodeId, now: Now) {
        self.peers.entry(from).or_default().disk_low_until_ms = Some(now.mono_ms + WORD_MS);
    }

    /// A task that is there already adds nothing: its submission is a resend, whose sender must hear so.
    fn adds(&self, shard: ShardId, order: &Order) -> bool {
        let is_there = |id| {
            let state = &self.seats[usize::from(shard)].state;
            state.task_state(&order.namespace, id).is_some()
        };
        match &order.command {
            Command::Enqueue(task) => !is_there(&task.id),
            command => command.adds(),
        }
    }

    /// Whether these orders are to be refused since they add to what is stored, and too few disks have room for it.
    pub(crate) fn lacks_room(&self, shard: ShardId, orders: &[Order]) -> bool {
        let is_low = |node: NodeId| match self.peers.get(&node) {
            _ if node == self.config.node => self.disk.is_low,
            peer => peer.is_some_and(|peer| peer.disk_low_until_ms.is_some()),
        };
        let peer_low = || self.peers.values().any(|peer| peer.disk_low_until_ms.is_some());
        if !(self.disk.is_low || peer_low()) || !orders.iter().any(|order| self.adds(shard, order))
        {
            return false;
        }
        let conf = self.consensus.conf(shard);
        let has_room = |node: &&NodeId| self.is_up(**node) && !is_low(**node);
        let too_few =
            |voters: &[NodeId]| voters.iter().filter(has_room).count() <= voters.len() / 2;
        too_few(&conf.voters) || (conf.is_joint() && too_few(&conf.voters_outgoing))
    }

    /// A peer's disk stands still.
    pub(crate) fn disk_still(&mut self, from: NodeId, now: Now) {
        self.peers.entry(from).or_default().disk_still_until_ms = Some(now.mono_ms + WORD_MS);
    }

    /// Whether the node's disk stands still, as far as is known here.
    pub(crate) fn has_still_disk(&self, node: NodeId) -> bool {
        let peer = || self.peers.get(&node).is_some_and(|peer| peer.disk_still_until_ms.is_some());
        if node == self.config.node { self.disk.is_still } else { peer() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64) -> Now {
        Now { mono_ms, wall_ms: mono_ms }
    }

    #[test]
    fn a_disk_that_gets_on_does_not_stand_still() {
        let mut disk = DiskWatch::default();
        assert!(!disk.look(at(9_000)), "nothing waits for it");
        disk.handed_over(1, at(9_000));
        disk.handed_over(2, at(9_500));
        assert!(!disk.look(at(9_999)));
        assert!(disk.look(at(10_000)));
        disk.persisted(1, at(10_100));
        assert!(!disk.look(at(11_000)), "slow, but it moves");
        assert!(disk.look(at(11_100)));
        disk.persisted(2, at(11_200));
        assert!(!disk.look(at(60_000)));
    }
}
