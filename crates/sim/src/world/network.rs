//! The wires between nodes: what is lost, doubled, late, or cut.
//!
//! A wire is directed. `route` decides the fate of one frame: no copy (lost or cut), one, or two, each with its own
//! delay; frames overtake each other when their delays differ. Whether the receiver still runs is not known here.
//!
//! Leaves out: connections and their notices (`world::connections`), frame contents.

use std::collections::BTreeSet;

use fastrand::Rng;
use ikada_consensus::NodeId;

use crate::draw::{chance, log_uniform};

/// How bad the wires of one seed are.
#[derive(Debug, Clone)]
pub struct WireFaults {
    /// Frames lost, of 1000.
    pub loss_permille: u32,
    /// Frames delivered twice, of 1000.
    pub duplicate_permille: u32,
    /// Frames held back so that later ones overtake them, of 1000.
    pub reorder_permille: u32,
    /// Frames held back for up to `late_ms_max`, of 1000.
    pub late_permille: u32,
    /// The longest delay.
    pub late_ms_max: u64,
    /// Usual delay, least.
    pub delay_us_min: u64,
    /// Usual delay, most.
    pub delay_us_max: u64,
}

impl WireFaults {
    /// Good wires of a local network.
    pub fn none() -> Self {
        Self {
            loss_permille: 0,
            duplicate_permille: 0,
            reorder_permille: 0,
            late_permille: 0,
            late_ms_max: 1,
            delay_us_min: 100,
            delay_us_max: 400,
        }
    }
}

/// What becomes of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Never arrives.
    Lost,
    /// Arrives after this delay.
    Once(u64),
    /// Arrives twice, after these delays.
    Twice(u64, u64),
}

/// All wires.
#[derive(Debug)]
pub struct Network {
    /// How bad the wires are now.
    pub faults: WireFaults,
    cuts: BTreeSet<(NodeId, NodeId)>,
    /// When cut wires were mended last.
    pub mended_us: u64,
    rng: Rng,
}

impl Network {
    /// Whole wires with the given faults.
    pub fn new(faults: WireFaults, rng: Rng) -> Self {
        Self { faults, cuts: BTreeSet::new(), mended_us: 0, rng }
    }

    /// Decides the fate of one frame.
    pub fn route(&mut self, from: NodeId, to: NodeId) -> Fate {
        if self.is_cut(from, to) || chance(&mut self.rng, self.faults.loss_permille) {
            return Fate::Lost;
        }
        let first_us = self.delay_us();
        if chance(&mut self.rng, self.faults.duplicate_permille) {
            return Fate::Twice(first_us, self.delay_us());
        }
        Fate::Once(first_us)
    }

    fn delay_us(&mut self) -> u64 {
        let usual_us = self.rng.u64(self.faults.delay_us_min..=self.faults.delay_us_max);
        if chance(&mut self.rng, self.faults.late_permille) {
            return usual_us + log_uniform(&mut self.rng, 1, self.faults.late_ms_max) * 1_000;
        }
        if chance(&mut self.rng, self.faults.reorder_permille) {
            return usual_us * self.rng.u64(2..=20);
        }
        usual_us
    }

    /// Whether frames from one to the other vanish.
    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cuts.contains(&(from, to))
    }

    /// Cuts one direction.
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        if from != to {
            self.cuts.insert((from, to));
        }
    }

    /// Cuts both directions.
    pub fn cut_both(&mut self, one: NodeId, other: NodeId) {
        self.cut(one, other);
        self.cut(other, one);
    }

    /// Cuts every wire between the two groups.
    pub fn split(&mut self, left: &[NodeId], right: &[NodeId]) {
        for one in left {
            for other in right {
                self.cut_both(*one, *other);
            }
        }
    }

    /// Mends every cut.
    pub fn mend(&mut self, now_us: u64) {
        self.cuts.clear();
        self.mended_us = now_us;
    }

    /// Whether any wire is cut.
    pub fn has_cuts(&self) -> bool {
        !self.cuts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_one_way_cut_leaves_the_other_way() {
        let mut network = Network::new(WireFaults::none(), Rng::with_seed(3));
        network.cut(1, 2);
        assert_eq!(network.route(1, 2), Fate::Lost);
        assert!(matches!(network.route(2, 1), Fate::Once(_)));
        network.mend(0);
        assert!(matches!(network.route(1, 2), Fate::Once(_)));
    }

    #[test]
    fn loss_and_duplication_happen_at_their_rates() {
        let faults =
            WireFaults { loss_permille: 300, duplicate_permille: 200, ..WireFaults::none() };
        let mut network = Network::new(faults, Rng::with_seed(4));
        let (mut lost, mut twice) = (0, 0);
        for _ in 0..10_000 {
            match network.route(1, 2) {
                Fate::Lost => lost += 1,
                Fate::Twice(..) => twice += 1,
                Fate::Once(_) => {}
            }
        }
        assert!((2_700..3_300).contains(&lost), "lost {lost}");
        assert!((1_200..1_600).contains(&twice), "twice {twice}");
    }
}
