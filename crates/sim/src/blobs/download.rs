//! Downloads: a reader looks a name up, has the node keep the pieces, and takes them one after the other while objects
//! are removed and nodes tidy up.

use ikada_state::Digest;

use super::{Broken, GRACE_MS, Mischief, NODES, World};

/// Most downloads under way.
const DOWNLOADS_MAX: usize = 4;

pub(super) struct Download {
    /// Who serves it.
    pub(super) node: usize,
    /// What is still to be sent, and whether the node's own copy was whole and has not rotted since.
    pub(super) pieces: Vec<([u8; 32], bool)>,
    begun_ms: u64,
}

fn name_of(id: &[u8; 32]) -> String {
    Digest(*id).to_string()
}

impl World {
    pub(super) fn begin_download(&mut self, node: usize) {
        if self.downloads.len() >= DOWNLOADS_MAX || self.nodes[node].blobs.is_none() {
            return;
        }
        self.catch_up(node);
        let wanted = self.nodes[node].states[1].references(None, usize::MAX).digests;
        let pieces: Vec<_> =
            wanted.iter().map(|Digest(id)| (*id, self.whole_copy(node, &name_of(id)))).collect();
        if let (Some(blobs), true) =
            (&self.nodes[node].blobs, self.mischief != Mischief::NoReaderPins)
        {
            pieces.iter().for_each(|(id, _)| blobs.pin(id, self.now_ms));
        }
        if !pieces.is_empty() {
            self.downloads.push(Download { node, pieces, begun_ms: self.now_ms });
        }
    }

    /// Sends the next piece of some download.
    pub(super) fn advance_download(&mut self) -> Result<(), Broken> {
        if self.downloads.is_empty() {
            return Ok(());
        }
        let number = self.rng.usize(0..self.downloads.len());
        let Download { node, ref mut pieces, begun_ms } = self.downloads[number];
        let Some((id, had)) = pieces.pop() else {
            self.downloads.swap_remove(number);
            self.tally.downloaded += 1;
            return Ok(());
        };
        let has = |node: &super::node::Node| node.blobs.as_ref()?.get(&id).ok().flatten();
        let here = has(&self.nodes[node]);
        if here.is_none() && had && self.now_ms - begun_ms < GRACE_MS {
            let lost = format!("piece {}: taken from under a reader", name_of(&id));
            return Err(Broken(lost));
        }
        match here.or_else(|| self.nodes.iter().find_map(has)) {
            Some(bytes) if bytes != self.contents[&id] => {
                Err(Broken(format!("piece {}: a download got other bytes", name_of(&id))))
            }
            Some(_) => Ok(()),
            // Cut short: the reader sees that bytes are missing.
            None => {
                self.downloads.swap_remove(number);
                self.tally.cut_short += 1;
                Ok(())
            }
        }
    }

    /// Readers of a node that is gone are gone as well.
    pub(super) fn drop_downloads(&mut self, node: usize) {
        self.downloads.retain(|download| download.node != node);
    }

    /// A copy rotted: readers of that node may have to do without it.
    pub(super) fn note_rot(&mut self, node: usize, name: &str) {
        debug_assert!(node < NODES, "known node");
        for download in self.downloads.iter_mut().filter(|download| download.node == node) {
            let rotten = download.pieces.iter_mut().filter(|(id, _)| name_of(id) == name);
            rotten.for_each(|(_, had)| *had = false);
        }
    }
}
