//! Who belongs to the cluster, for links, redirects and those who ask: one list, shared by all tasks of the process.
//!
//! Promise: it only learns. A member leaves it only when the log says that the node was removed, so that an older
//! snapshot, which knows fewer members, cannot cut a link that the newer state needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use ikada_replica::Roll;
use ikada_replica::founding::Candidate;
use ikada_replica::state::Member;

/// What a node is to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A member, with this very disk.
    Member,
    /// A member by its id, with another disk (F-17).
    OtherDisk,
    /// It left for good.
    Removed,
    /// Not, or not yet, a member.
    Stranger,
}

/// What changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Members that came.
    pub came: Vec<Member>,
    /// Ids that went.
    pub went: Vec<u64>,
}

#[derive(Debug, Default)]
struct Known {
    members: BTreeMap<u64, Member>,
    removed: BTreeSet<u64>,
}

/// The shared list.
#[derive(Debug, Clone, Default)]
pub struct Directory(Arc<RwLock<Known>>);

impl Directory {
    /// A list that begins with these.
    pub fn new(members: Vec<Member>) -> Self {
        let members = members.into_iter().map(|member| (member.node, member)).collect();
        Directory(Arc::new(RwLock::new(Known { members, removed: BTreeSet::new() })))
    }

    /// Learns from the log.
    pub fn learn(&self, roll: &Roll) -> News {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut news = News::default();
        known.removed.extend(&roll.removed);
        for node in &roll.removed {
            if known.members.remove(node).is_some() {
                news.went.push(*node);
            }
        }
        for member in &roll.members {
            if !known.removed.contains(&member.node) && !known.members.contains_key(&member.node) {
                known.members.insert(member.node, member.clone());
                news.came.push(member.clone());
            }
        }
        news
    }

    /// What a node is to the cluster.
    pub fn standing(&self, node: u64, incarnation: u64) -> Standing {
        let known = self.read();
        match known.members.get(&node) {
            Some(member) if member.incarnation == incarnation => Standing::Member,
            Some(_) => Standing::OtherDisk,
            None if known.removed.contains(&node) => Standing::Removed,
            None => Standing::Stranger,
        }
    }

    /// Whether a node left for good.
    pub fn is_removed(&self, node: u64) -> bool {
        self.read().removed.contains(&node)
    }

    /// Where clients reach a member.
    pub fn client_addr(&self, node: u64) -> Option<String> {
        self.read().members.get(&node).map(|member| member.client_addr.clone())
    }

    /// All members, in id order.
    pub fn candidates(&self) -> Vec<Candidate> {
        let known = self.read();
        let each = known.members.values().map(|member| Candidate {
            node: member.node,
            incarnation: member.incarnation,
            peer_addr: member.peer_addr.clone(),
            client_addr: member.client_addr.clone(),
        });
        each.collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u64) -> Member {
        let (peer_addr, client_addr) = (format!("p{node}"), format!("c{node}"));
        Member { node, incarnation: node, peer_addr, client_addr }
    }

    #[test]
    fn a_member_goes_only_when_it_was_removed() {
        let directory = Directory::new(vec![member(1), member(2)]);
        let news = directory.learn(&Roll { members: vec![member(1), member(3)], removed: vec![] });
        assert_eq!(news, News { came: vec![member(3)], went: vec![] });
        assert_eq!(directory.standing(2, 2), Standing::Member);
        assert_eq!(directory.standing(3, 9), Standing::OtherDisk);
        let news = directory.learn(&Roll { members: vec![member(1)], removed: vec![2] });
        assert_eq!(news, News { came: vec![], went: vec![2] });
        assert_eq!(directory.standing(2, 2), Standing::Removed);
        // An older state cannot bring it back.
        let news = directory.learn(&Roll { members: vec![member(2)], removed: vec![] });
        assert_eq!((news, directory.standing(2, 2)), (News::default(), Standing::Removed));
        assert_eq!(directory.standing(9, 9), Standing::Stranger);
    }
}
