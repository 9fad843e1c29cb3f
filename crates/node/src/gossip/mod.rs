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
use crate::config::{SHARDS_MAX, VOTERS_MAX};

pub(crate) use spread::spread;

/// A fact that was not renewed for this long is no longer told or shown.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// Most facts that are taken from one message: more than there can be members.
const FACTS_MAX: usize = 64;
/// Most followers of one shard that a leader speaks of: all other voters, and whoever is joining.
const FOLLOWERS_MAX: usize = VOTERS_MAX as usize;

/// What the leader of a shard knows of those who follow it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ShardLag {
    /// Which shard.
    #[n(0)]
    pub shard: u16,
    /// The term in which it leads: of two nodes that say they lead, the later term is right.
    #[n(1)]
    pub term: u64,
    /// Last index of its log.
    #[n(2)]
    pub last_index: u64,
    /// Every follower, with the entries that it is not known to have.
    #[n(3)]
    pub behind: Vec<(u64, u64)>,
}

/// What a node says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
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
    /// The shards that it leads, and how far others are in them; programs before this field tell none.
    #[n(9)]
    #[cbor(default)]
    pub lags: Vec<ShardLag>,
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

    /// The fact with no more in it than a node can have to say.
    fn bounded(&self) -> Fact {
        let mut fact = self.clone();
        fact.lags.truncate(usize::from(SHARDS_MAX));
        fact.lags.iter_mut().for_each(|lag| lag.behind.truncate(FOLLOWERS_MAX));
        fact
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
                known.insert(fact.node, (fact.bounded(), now));
            }
        }
    }

    /// Says something about this node itself.
    fn say(&self, fact: &Fact, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(fact.node, (fact.bounded(), now));
    }

    /// Everything that was renewed lately.
    pub(crate) fn facts(&self, now: Instant) -> Vec<Fact> {
        self.facts_with_ages(now).into_iter().map(|(fact, _)| fact).collect()
    }

    /// The same, each with the time since it was heard. A shard is in at most one of them, that of the latest term: a
    /// node that no longer leads goes on saying so until it knows better, and all together must fit into one message.
    pub(crate) fn facts_with_ages(&self, now: Instant) -> Vec<(Fact, Duration)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known.values().filter(|(_, heard)| is_fresh(*heard, now));
        let mut facts: Vec<(Fact, Duration)> = fresh
            .map(|(fact, heard)| (fact.clone(), now.saturating_duration_since(*heard)))
            .collect();
        let mut leaders: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for (fact, _) in &facts {
            for lag in &fact.lags {
                let leader = leaders.entry(lag.shard).or_default();
                *leader = (*leader).max((lag.term, fact.node));
            }
        }
        for (fact, _) in &mut facts {
            let node = fact.node;
            fact.lags.retain(|lag| leaders.get(&lag.shard) == Some(&(lag.term, node)));
        }
        facts
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
    use crate::objects::{BlobAsk, MESSAGE_BYTES_MAX};
    use crate::peers::encode;

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
            lags: Vec::new(),
        }
    }

    fn leading(node: u64, shards: &[(u16, u64)]) -> Fact {
        let lag = |(shard, term): &(u16, u64)| ShardLag {
            shard: *shard,
            term: *term,
            last_index: u64::MAX,
            behind: vec![(u64::MAX, u64::MAX); FOLLOWERS_MAX + 5],
        };
        Fact { lags: shards.iter().map(lag).collect(), ..fact(node, u64::MAX, u64::MAX, u16::MAX) }
    }

    fn cpus(gossip: &Gossip, now: Instant) -> Vec<(u64, u16)> {
        gossip.facts(now).iter().map(|fact| (fact.node, fact.cpu)).collect()
    }

    // F-38
    #[test]
    fn f_38_strangers_and_old_words_change_nothing() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        gossip.say(&fact(1, 5, 1, 10), now);
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
    fn f_38_of_two_that_say_they_lead_a_shard_the_later_term_is_told() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        gossip.hear(&[leading(2, &[(0, 4), (1, 9)]), leading(3, &[(0, 5)])], &[2, 3], now);
        let led = |gossip: &Gossip| -> Vec<(u64, u16, u64)> {
            let facts = gossip.facts(now).into_iter();
            facts
                .flat_map(|fact| {
                    fact.lags.into_iter().map(move |lag| (fact.node, lag.shard, lag.term))
                })
                .collect()
        };
        assert_eq!(led(&gossip), [(2, 1, 9), (3, 0, 5)]);
        let (later, ages) = (now + Duration::from_secs(3), Duration::from_secs(3));
        assert!(gossip.facts_with_ages(later).iter().all(|(_, age)| *age == ages));
    }

    // X7: whatever nodes say of themselves, all of it fits into one message.
    #[test]
    fn x_7_the_most_that_can_be_known_fits_into_a_message() {
        let (gossip, now) = (Gossip::default(), Instant::now());
        let members: Vec<u64> = (0..8).map(|node| u64::MAX - node).collect();
        for (term, node) in members.iter().enumerate() {
            let shards: Vec<(u16, u64)> =
                (0..SHARDS_MAX + 9).map(|shard| (shard, u64::MAX - term as u64)).collect();
            gossip.hear(&[leading(*node, &shards)], &members, now);
        }
        let told = encode(&BlobAsk::Gossip(gossip.facts(now)));
        assert!(told.len() < MESSAGE_BYTES_MAX, "{} bytes", told.len());
        let lags: usize = gossip.facts(now).iter().map(|fact| fact.lags.len()).sum();
        assert_eq!(lags, usize::from(SHARDS_MAX));
    }

    // A program before this one says nothing of shards, and reads over what it does not know.
    #[test]
    fn f_38_a_fact_without_shards_is_read() {
        let old =
            minicbor::to_vec((2u64, 5u64, 7u64, 20u16, 0u16, 0u64, 0u64, 0u16, 0u64)).unwrap();
        assert_eq!(minicbor::decode::<Fact>(&old).unwrap(), fact(2, 5, 7, 20));
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
