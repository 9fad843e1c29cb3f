//! Many rounds between many nodes, by a clock of their own: words that get lost, a cluster in two halves, a member that
//! comes and goes (F-38). Who is a member is an input here as in the product: nothing that is heard changes it.

use std::time::{Duration, Instant};

use fastrand::Rng;

use super::spread::{ROUND_MS, choose};
use super::{FORGOTTEN_AFTER, Fact, Gossip};

const NODES: u64 = 5;

/// Nodes that gossip.
struct World {
    nodes: Vec<Gossip>,
    lives: Vec<u64>,
    random: Rng,
    start: Instant,
    round: u64,
    /// How many of a hundred exchanges are lost.
    loss: u8,
    /// Whether nodes below three and the others cannot hear each other.
    is_split: bool,
    /// Nodes that are down.
    down: Vec<u64>,
}

impl World {
    fn new(seed: u64, loss: u8) -> World {
        World {
            nodes: (0..NODES).map(|_| Gossip::default()).collect(),
            lives: vec![1; NODES as usize],
            random: Rng::with_seed(seed),
            start: Instant::now(),
            round: 0,
            loss,
            is_split: false,
            down: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.round * ROUND_MS)
    }

    fn is_lost(&mut self, from: u64, to: u64) -> bool {
        let is_apart = self.is_split && (from < 3) != (to < 3);
        let is_down = self.down.contains(&from) || self.down.contains(&to);
        is_apart || is_down || self.random.u8(0..100) < self.loss
    }

    /// One round: everybody speaks of itself, and tells some others all it knows; they answer with what they know.
    fn step(&mut self) {
        self.round += 1;
        let now = self.now();
        for node in 0..NODES {
            let (life_ms, sequence) = (self.lives[node as usize], self.round);
            let own = Fact {
                node,
                life_ms,
                sequence,
                cpu: 0,
                memory: 0,
                admitted_last_minute: 0,
                shed_last_minute: 0,
                cache_hit_permille: 0,
                cache_bytes: 0,
                lags: Vec::new(),
            };
            self.nodes[node as usize].say(&own, now);
            let others: Vec<u64> = (0..NODES).filter(|other| *other != node).collect();
            for other in choose(others.clone(), &mut self.random) {
                if self.is_lost(node, other) {
                    continue;
                }
                let told = self.nodes[node as usize].facts(now);
                let members: Vec<u64> = (0..NODES).filter(|known| *known != other).collect();
                self.nodes[other as usize].hear(&told, &members, now);
                let answered = self.nodes[other as usize].facts(now);
                self.nodes[node as usize].hear(&answered, &others, now);
            }
        }
    }

    /// Whom a node knows of.
    fn known(&self, node: u64) -> Vec<u64> {
        let facts = self.nodes[node as usize].facts(self.now());
        facts.iter().map(|fact| fact.node).collect()
    }

    /// How often a living node is taken for gone.
    fn forgotten(&self) -> usize {
        (0..NODES).map(|node| NODES as usize - self.known(node).len()).sum()
    }
}

// F-38: less than one false alarm in an hour with a tenth of all words lost; here none, and none with three tenths.
#[test]
fn f_38_no_living_node_is_forgotten_when_words_get_lost() {
    for (seed, loss) in [(1, 10), (2, 10), (3, 30)] {
        let mut world = World::new(seed, loss);
        (0..20).for_each(|_| world.step());
        let forgotten: usize = (0..3_600)
            .map(|_| {
                world.step();
                world.forgotten()
            })
            .sum();
        assert_eq!(forgotten, 0, "in an hour at {loss} % loss");
    }
}

// F-38: a minute in two halves; each forgets the other, and both know all again a few rounds after.
#[test]
fn f_38_halves_of_a_cluster_find_each_other_again() {
    let mut world = World::new(4, 10);
    (0..20).for_each(|_| world.step());
    world.is_split = true;
    (0..60).for_each(|_| world.step());
    assert_eq!(world.known(0), [0, 1, 2]);
    assert_eq!(world.known(4), [3, 4]);
    world.is_split = false;
    (0..10).for_each(|_| world.step());
    assert_eq!(world.forgotten(), 0);
}

// F-38: whoever comes and goes is known by its newest life, and nobody else suffers.
#[test]
fn f_38_a_member_that_flaps_is_known_by_its_newest_life() {
    let mut world = World::new(5, 10);
    (0..20).for_each(|_| world.step());
    for _ in 0..30 {
        world.down = vec![2];
        (0..4).for_each(|_| world.step());
        world.down = Vec::new();
        world.lives[2] += 1;
        (0..8).for_each(|_| world.step());
        for node in [0, 1, 3, 4] {
            let facts = world.nodes[node].facts(world.now());
            assert_eq!(facts.len() as u64, NODES, "node {node}");
            assert_eq!(facts[2].life_ms, world.lives[2], "node {node}");
        }
    }
    // Gone for good: forgotten in time, though others told each other of it for a while.
    world.down = vec![2];
    let rounds = FORGOTTEN_AFTER.as_millis() as u64 / ROUND_MS + 10;
    (0..rounds).for_each(|_| world.step());
    assert_eq!(world.known(0), [0, 1, 3, 4]);
}
