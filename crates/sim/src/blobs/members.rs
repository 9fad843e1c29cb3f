//! Members that come with an empty disk, and members that leave once the others have what they have.

use ikada_state::Digest;

use super::node::Node;
use super::{MEMBERS_MIN, Mischief, NODES, World};

impl World {
    /// How many of the members are a majority.
    pub(super) fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// A machine that is no member becomes one, as a node that never was there before.
    pub(super) fn join(&mut self) {
        let Some(node) = (0..NODES).find(|node| !self.members.contains(node)) else { return };
        self.nodes[node] = Node::new(self.nodes[node].grace_ms, true);
        self.members.push(node);
        self.members.sort_unstable();
        self.tally.joined += 1;
    }

    /// A member leaves for good, and its disk with it, if a majority of the others has every piece that is referred to.
    pub(super) fn leave(&mut self, leaving: usize) {
        let staying: Vec<usize> =
            self.members.iter().copied().filter(|node| *node != leaving).collect();
        let up = staying.iter().filter(|node| self.nodes[**node].blobs.is_some()).count();
        let needed = staying.len() / 2 + 1;
        if staying.len() < MEMBERS_MIN || up < needed {
            return;
        }
        if self.mischief != Mischief::LeaveBlindly && self.is_needed(&staying, leaving, needed) {
            self.tally.kept_from_leaving += 1;
            return;
        }
        self.nodes[leaving] = Node::new(self.nodes[leaving].grace_ms, false);
        self.lost.retain(|(node, _)| *node != leaving);
        self.drop_downloads(leaving);
        self.members = staying;
        self.promised.values_mut().for_each(|copies| *copies = (*copies).min(needed));
        self.tally.left += 1;
    }

    /// Whether some piece would be on too few nodes.
    fn is_needed(&self, staying: &[usize], leaving: usize, needed: usize) -> bool {
        let has = |node: usize, id: &[u8; 32]| {
            let blobs = self.nodes[node].blobs.as_ref();
            blobs.is_some_and(|blobs| blobs.confirm(id, self.now_ms).unwrap_or(false))
        };
        let wanted = self.truth[1].references(None, usize::MAX).digests;
        wanted.iter().any(|Digest(id)| {
            let copies = staying.iter().filter(|node| has(**node, id)).count();
            copies < needed && (copies > 0 || has(leaving, id))
        })
    }
}
