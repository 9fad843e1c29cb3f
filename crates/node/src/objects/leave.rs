//! Whether a member can leave: the others must have what it has, or its disk would take the last copies along (A2, R9).
//!
//! Every piece is read and checked on every node, which takes its time where there are many. So a look that is cut off is
//! remembered, and the next one goes on behind the pages that were found whole, as long as the members are the same.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use ikada_replica::state::{Digest, Digests, ShardId};
use tokio::task::JoinSet;

use super::Shelf;
use crate::config::CONFIRM_PIECES_MAX;
use crate::http::Door;

/// How long a look is remembered after its last page. What is found whole is referred to, so that only damage undoes it.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// How far the look before a member leaves has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looked {
    leaving: u64,
    members: Vec<u64>,
    shard: ShardId,
    /// Up to here nothing of the shard is missing.
    after: Option<Digest>,
    at: Instant,
}

/// What each node lacks; none for one that did not answer, which counts as if it had nothing.
#[derive(Debug, Default)]
struct Lacks(BTreeMap<u64, Option<Digests>>);

impl Shelf {
    /// How many pieces would be on too few nodes without this member, though it or another could still hand them on.
    /// None if that cannot be found out now. Whoever has a piece keeps it for the grace time.
    pub(crate) async fn missing_without<D: Door>(&self, door: &D, leaving: u64) -> Option<u64> {
        let mut looked = self.looked_before(leaving);
        // A peer that did not answer once is not asked again in this look.
        let (mut missing, mut silent) = (0, Vec::new());
        let begun = looked.shard;
        for shard in begun..door.status().await.shards.len() as ShardId {
            // An object that is not known here would not be missed.
            if !self.is_up_to_date(door, shard).await {
                return None;
            }
            let mut after = looked.after.filter(|_| shard == begun);
            loop {
                let page = self.page_of_references(door, shard, after).await?;
                after = page.digests.last().copied().or(after);
                let here = door.info().node;
                for some in page.digests.chunks(CONFIRM_PIECES_MAX) {
                    let wanted: Digests = some.to_vec().into();
                    missing += self.missing_of(here, leaving, wanted, &mut silent).await?;
                }
                if missing == 0 {
                    (looked.shard, looked.after, looked.at) = (shard, after, Instant::now());
                    self.remember_look(Some(looked.clone()));
                }
                if !page.more {
                    break;
                }
            }
        }
        if missing == 0 {
            self.remember_look(None);
        }
        Some(missing)
    }

    /// Where the next look begins.
    fn looked_before(&self, leaving: u64) -> Looked {
        let members = self.0.members();
        let known = self.0.looked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = known.filter(|known| {
            (known.leaving, &known.members) == (leaving, &members)
                && known.at.elapsed() < REMEMBERED
        });
        known.unwrap_or(Looked { leaving, members, shard: 0, after: None, at: Instant::now() })
    }

    fn remember_look(&self, looked: Option<Looked>) {
        *self.0.looked.lock().unwrap_or_else(PoisonError::into_inner) = looked;
    }

    async fn missing_of(
        &self,
        here: u64,
        leaving: u64,
        wanted: Digests,
        silent: &mut Vec<u64>,
    ) -> Option<u64> {
        let peers = self.peers();
        let is_member = here == leaving || peers.iter().any(|peer| peer.node == leaving);
        let staying = peers.len() + 1 - usize::from(is_member);
        // The last member, or a stranger: not for us to say.
        if !is_member || staying == 0 || wanted.is_empty() {
            return Some(0);
        }
        let mut asked = JoinSet::new();
        for peer in peers.into_iter().filter(|peer| !silent.contains(&peer.node)) {
            let wanted = wanted.clone();
            asked.spawn(async move { (peer.node, peer.confirm(wanted).await.ok()) });
        }
        let own = self.confirm_here(wanted.clone()).await.ok()?;
        let mut lacks = Lacks(BTreeMap::from([(here, Some(own))]));
        while let Some(told) = asked.join_next().await {
            let (node, told) = told.ok()?;
            if told.is_none() {
                silent.push(node);
            }
            lacks.0.insert(node, told);
        }
        Some(lacks.short_of(&wanted, leaving, staying / 2 + 1))
    }
}

impl Lacks {
    /// How many pieces fewer than the needed nodes have, the leaving one left out.
    fn short_of(&self, wanted: &[Digest], leaving: u64, needed: usize) -> u64 {
        let has = |lacks: &Option<Digests>, digest: &Digest| {
            lacks.as_ref().is_some_and(|lacks| !lacks.contains(digest))
        };
        let short = |digest: &&Digest| {
            let staying = self.0.iter().filter(|(node, _)| **node != leaving);
            let copies = staying.filter(|(_, lacks)| has(lacks, digest)).count();
            let with_leaver = self.0.get(&leaving).is_some_and(|lacks| has(lacks, digest));
            // What nobody has any more keeps nobody from leaving.
            copies < needed && (copies > 0 || with_leaver)
        };
        wanted.iter().filter(short).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A2: who does not answer has nothing, and what nobody has keeps nobody.
    #[test]
    fn a2_copies_are_counted_without_the_leaver() {
        let (one, two) = (Digest([1; 32]), Digest([2; 32]));
        let none = || Some(Digests::from(Vec::new()));
        let all = || Some(Digests::from(vec![one, two]));
        let short = |told: [Option<Digests>; 3]| {
            let told = (1..).zip(told).collect();
            Lacks(told).short_of(&[one, two], 3, 2)
        };
        assert_eq!(short([none(), none(), none()]), 0);
        assert_eq!(short([none(), none(), None]), 0, "a dead member may go");
        assert_eq!(short([none(), None, none()]), 2, "one of those who stay is silent");
        assert_eq!(short([none(), Some(Digests::from(vec![two])), none()]), 1);
        assert_eq!(short([all(), all(), none()]), 2, "the leaver has the last copies");
        assert_eq!(short([all(), all(), all()]), 0, "lost already");
    }
}
