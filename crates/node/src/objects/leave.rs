//! Whether a member can leave: the others must have what it has, or its disk would take the last copies along (A2, R9).

use ikada_replica::state::{Digest, Digests, ShardId};

use super::Shelf;
use crate::http::Door;

impl Shelf {
    /// How many pieces would be on too few nodes without this member, though it or another could still hand them on.
    /// None if that cannot be found out now. Whoever has a piece keeps it for the grace time.
    pub(crate) async fn missing_without<D: Door>(&self, door: &D, leaving: u64) -> Option<u64> {
        let mut missing = 0;
        for shard in 0..door.status().await.shards.len() as ShardId {
            let mut after = None;
            loop {
                let page = self.page_of_references(door, shard, after).await?;
                after = page.digests.last().copied();
                missing += self.missing_of(door.info().node, leaving, page.digests.into()).await;
                if !page.more {
                    break;
                }
            }
        }
        Some(missing)
    }

    async fn missing_of(&self, here: u64, leaving: u64, wanted: Digests) -> u64 {
        let peers = self.peers();
        let is_member = here == leaving || peers.iter().any(|peer| peer.node == leaving);
        let staying = peers.len() + 1 - usize::from(is_member);
        // The last member, or a stranger: not for us to say.
        if !is_member || staying == 0 || wanted.is_empty() {
            return 0;
        }
        let (mut lacking, mut with_leaver) = (Vec::new(), Vec::new());
        let own = self.confirm_here(wanted.clone()).await.unwrap_or_else(|_| wanted.clone());
        match here == leaving {
            true => with_leaver = own.to_vec(),
            false => lacking.push(own),
        }
        for peer in &peers {
            // Who does not answer has nothing.
            let lacks = peer.confirm(wanted.clone()).await.unwrap_or_else(|_| wanted.clone());
            match peer.node == leaving {
                true => with_leaver = lacks.to_vec(),
                false => lacking.push(lacks),
            }
        }
        let needed = staying / 2 + 1;
        let short = |digest: &&Digest| {
            let copies = lacking.iter().filter(|lacks| !lacks.contains(digest)).count();
            // What nobody has any more keeps nobody from leaving.
            copies < needed && (copies > 0 || !with_leaver.contains(digest))
        };
        wanted.iter().filter(short).count() as u64
    }
}
