//! Whether disks stand still: this node's own by the batches that wait for it, its peers' by what they say.
//!
//! Promise: a node whose disk has shown no progress for a second says so to all peers until it moves again, and whoever
//! hears it gives that node no leadership meanwhile. Nothing is sent while disks are well, and nothing is known of a disk
//! that nobody writes to.

use ikada_consensus::NodeId;

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
        let mut hear = Vec::new();
        for (node, peer) in &mut self.peers {
            peer.disk_still_until_ms =
                peer.disk_still_until_ms.filter(|until| now.mono_ms < *until);
            // Said to those whose connection is down as well: ours may be the ear that is deaf, not theirs.
            if is_still {
                hear.push(*node);
            }
        }
        for node in hear {
            self.send(node, &PeerMessage::DiskStill);
        }
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
