//! What must hold: copies of what is referred to, bytes as written, and a tidy end.

use ikada_state::Digest;
use ikada_store::Disk;
use ikada_store::blob::digest;

use super::keep::is_blob;
use super::{Broken, GRACE_MS, Mischief, World};

/// Steps that healing may take.
const HEAL_STEPS: u32 = 4_000;

fn hex(id: &[u8; 32]) -> String {
    Digest(*id).to_string()
}

impl World {
    /// Whether a disk has the right bytes under a digest.
    pub(super) fn whole_copy(&self, node: usize, name: &str) -> bool {
        let bytes =
            self.nodes[node].disk.read(&format!("blob/{}/{name}", &name[..2.min(name.len())]));
        bytes.is_ok_and(|bytes| hex(&digest(&bytes)) == name)
    }

    /// A2, A3: a majority keeps every piece of every committed object; what is damaged can be made whole.
    /// A copy that rotted counts until it is replaced: that is the disk's doing.
    pub(super) fn check(&mut self) -> Result<(), Broken> {
        let mut lost = std::mem::take(&mut self.lost);
        lost.retain(|(node, name)| !self.whole_copy(*node, name));
        self.lost = lost;
        for Digest(id) in self.truth[1].references(None, usize::MAX).digests {
            let name = hex(&id);
            let file = format!("blob/{}/{name}", &name[..2]);
            let has = |node: &usize| {
                self.nodes[*node].disk.exists(&file).unwrap_or(false)
                    || self.lost.contains(&(*node, name.clone()))
            };
            let kept = self.members.iter().filter(|node| has(node)).count();
            let whole = self.members.iter().filter(|node| self.whole_copy(**node, &name)).count();
            let promised = self.promised.get(&id).copied().unwrap_or(0);
            if kept < promised || whole == 0 {
                let found = format!("piece {name}: {kept} copies, {whole} of them whole");
                return Err(Broken(found));
            }
        }
        Ok(())
    }

    /// A1: a reader gets the bytes that were written, from this node or another.
    pub(super) fn read(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].blobs.is_none() {
            return Ok(());
        }
        self.catch_up(node);
        let wanted = self.nodes[node].states[1].references(None, usize::MAX).digests;
        for Digest(id) in wanted {
            let mut nodes = self.nodes[node..].iter().chain(&self.nodes[..node]);
            let served = nodes.find_map(|node| {
                let blobs = node.blobs.as_ref()?;
                if self.mischief == Mischief::NoScrub {
                    let name = hex(&id);
                    return node.disk.read(&format!("blob/{}/{name}", &name[..2])).ok();
                }
                blobs.get(&id).ok().flatten()
            });
            if served.as_ref().is_some_and(|bytes| *bytes != self.contents[&id]) {
                return Err(Broken(format!("piece {}: other bytes were served", hex(&id))));
            }
            self.tally.read += u64::from(served.is_some());
        }
        Ok(())
    }

    /// All nodes come back and tidy up: then each has every piece that is referred to, whole, and nothing else.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.uploads.clear();
        self.downloads.clear();
        for node in self.members.clone() {
            self.start(node);
            self.catch_up(node);
        }
        self.now_ms += 2 * GRACE_MS;
        for step in 0..HEAL_STEPS {
            let node = self.members[step as usize % self.members.len()];
            if (step as usize) < 2 * self.members.len() {
                self.scrub(node);
            }
            self.catch_up(node);
            self.repair(node);
            self.collect(node);
            self.check()?;
            // Repairs pin; time must pass for removals to go on.
            self.now_ms += GRACE_MS / 50;
            if self.is_tidy() {
                return Ok(());
            }
        }
        Err(Broken("after healing, some node lacks a piece or keeps one too many".to_owned()))
    }

    fn is_tidy(&self) -> bool {
        let wanted = self.truth[1].references(None, usize::MAX).digests;
        self.members.iter().all(|node| {
            let node = *node;
            let files = self.nodes[node].disk.files();
            let kept = files.iter().filter(|(name, _)| is_blob(name)).count();
            kept == wanted.len() && wanted.iter().all(|id| self.whole_copy(node, &id.to_string()))
        })
    }
}
