//! Gossip: what nodes tell each other about themselves, beside the log (F-38).
//!
//! Promise: facts only hint. Who is a member is decided by the log alone: a fact about a stranger is dropped, and
//! nothing that is heard here opens a link, moves a leader or counts in a majority. Facts travel over the peer port, so
//! that they are as trusted as any word between nodes, with TLS as without. Each node tells two others once a second
//! whatever it knows, and hears what they know; a fact that nobody renews is forgotten.
//!
//! Leaves out: finding nodes before there is a cluster (`boot`), and failure detection (links and leaders).

mod spread;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use minicbor::{Decode, Encode};

use crate::admission::LoadFacts;

pub(crate) use spread::spread;

/// A fact that was not renewed for this long is no longer told or shown.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// Most facts that are taken from one message: more than there can be members.
const FACTS_MAX: usize = 64;

/// What a node says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Fact {
    /// Which node.
    #[n(0)]
    pub node: u64,
    /// When its process started, ms since 1970: a later life has the later word.
    #[n(1)]
    pub life_ms: u64,
    /// Rises with every word of one life.
    #[n(2)]
    pub sequence: u64,
    /// CPU in use, hundredths of a percent.
    #[n(3)]
    pub cpu: u16,
    /// Memory in use, hundredths of a percent.
    #[n(4)]
    pub memory: u16,
    /// Calls admitted during the last minute.
    #[n(5)]
    pub admitted_last_minute: u64,
    /// Calls turned away during the last minute.
    #[n(6)]
    pub shed_last_minute: u64,
    /// Share of reads of pieces that memory answered, thousandths.
    #[n(7)]
    pub cache_hit_permille: u16,
    /// Bytes of pieces in memory.
    #[n(8)]
    pub cache_bytes: u64,
}

impl Fact {
    /// The load in it.
    pub(crate) fn load(&self) -> LoadFacts {
        LoadFacts {
            cpu: self.cpu,
            memory: self.memory,
            admitted_last_minute: self.admitted_last_minute,
            shed_last_minute: self.shed_last_minute,
        }
    }

    /// Which of two words about a node is the later one.
    fn age(&self) -> (u64, u64) {
        (self.life_ms, self.sequence)
    }
}

/// What this node knows of the others and of itself.
#[derive(Debug, Default)]
pub struct Gossip(Mutex<BTreeMap<u64, (Fact, Instant)>>);

impl Gossip {
    /// Takes what another node told. Facts about others than these members are dropped, and so is what is known better.
    pub(crate) fn hear(&self, facts: &[Fact], members: &[u64], now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An old word about a member stays as a mark, or it would come back from others who heard it later, for ever.
        known.retain(|node, (_, heard)| members.contains(node) || is_fresh(*heard, now));
        for fact in facts.iter().take(FACTS_MAX) {
            let newer = known.get(&fact.node).is_none_or(|(old, _)| old.age() < fact.age());
            if newer && members.contains(&fact.node) {
                known.insert(fact.node, (*fact, now));
            }
        }
    }

    /// Says something about this node itself.
    fn say(&self, fact: Fact, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(fact.node, (fact, now));
    }

    /// Everything that was renewed lately.
    pub(crate) fn facts(&self, now: Instant) -> Vec<Fact> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.values().filter(|(_, heard)| is_fresh(*heard, now));
        fresh.map(|(fact, _)| *fact).collect()
    }
}

fn is_fresh(heard: Instant, now: Instant) -> bool {
    now.saturating_duration_since(heard) < FORGOTTEN_AFTER
}

#[cfg(test)]
mod rounds_test;

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(node: u64, life_ms: u64, sequence: u64, cpu: u16) -> Fact {
        Fact {
            node,
            life_ms,
            sequence,
            cpu,
            memory: 0,
            admitted_last_minute: 0,
            shed_last_minute: 0,
            cache_hit_permille: 0,
            cache_bytes: 0,
        }
    }

    fn cpus(gossip: &Gossip, now: Instant) -> Vec<(u64, u16)> {
        gossip.facts(now).iter().map(|fact| (fact.node, fact.cpu)).collect()
    }

    // F-38
    #[test]
    fn f_38_strangers_and_old_words_change_nothing() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        gossip.say(fact(1, 5, 1, 10), now);
        gossip.hear(&[fact(2, 5, 7, 20), fact(9, 5, 1, 90), fact(1, 99, 9, 99)], &[2, 3], now);
        assert_eq!(cpus(&gossip, now), [(1, 10), (2, 20)], "nobody speaks for us or for strangers");
        gossip.hear(&[fact(2, 5, 6, 66), fact(2, 4, 100, 44)], &[2, 3], now);
        assert_eq!(
            cpus(&gossip, now),
            [(1, 10), (2, 20)],
            "older words of the same and of an older life"
        );
        gossip.hear(&[fact(2, 6, 1, 30)], &[2, 3], now);
        assert_eq!(cpus(&gossip, now), [(1, 10), (2, 30)], "a restarted node begins anew");
    }

    #[test]
    fn f_38_what_nobody_renews_is_forgotten() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        gossip.hear(&[fact(2, 5, 7, 20)], &[2, 3], now);
        let later = now + FORGOTTEN_AFTER;
        // Heard again from a third node that has not noticed: the word is no newer.
        gossip.hear(&[fact(2, 5, 7, 20), fact(3, 1, 1, 1)], &[2, 3], later);
        assert_eq!(cpus(&gossip, later), [(3, 1)]);
    }

    #[test]
    fn f_38_a_message_of_any_length_takes_little() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        let many: Vec<Fact> = (0..100_000).map(|node| fact(node, 1, 1, 1)).collect();
        let members: Vec<u64> = (0..100_000).collect();
        gossip.hear(&many, &members, now);
        assert_eq!(gossip.facts(now).len(), FACTS_MAX);
    }
}
