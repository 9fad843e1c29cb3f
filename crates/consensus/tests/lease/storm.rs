//! Many seeds with everything at once: crashes, pauses, a database that is down, late, or forgets to answer.

use crate::world::World;

struct Storm {
    world: World,
    /// Proposals: who made it, where it stands, its text; and whether its node has applied it.
    proposed: Vec<(u64, (u64, u64), String, bool)>,
}

impl Storm {
    fn new(seed: u64) -> Storm {
        let mut world = World::new(seed, 3);
        world.delay_ms = world.rng.u64(1..400);
        world.lost_percent = world.rng.u64(0..15);
        world.late_percent = world.rng.u64(0..10);
        Storm { world, proposed: Vec::new() }
    }

    fn rage(&mut self) {
        for step in 0..400 {
            self.disturb();
            if let Some(leader) = self.world.leader()
                && let Some(at) = self.world.propose(leader, &format!("t{step}"))
            {
                self.proposed.push((leader, at, format!("t{step}"), false));
            }
            let reader = self.world.rng.u64(1..=3);
            self.world.read(reader);
            let ms = self.world.rng.u64(1..100);
            self.world.run(ms);
            self.note_applied();
        }
    }

    fn disturb(&mut self) {
        let node = self.world.rng.u64(1..=3);
        // Clocks run up to 3 % apart; the margin is made for 10 %.
        let rate = self.world.rng.u64(985..1_015);
        match self.world.rng.u64(0..60) {
            0 => self.world.start(node, rate),
            1 | 2 => {
                self.world.stall(node);
                let node = self.world.nodes.get_mut(&node).unwrap();
                node.is_paused = !node.is_paused;
            }
            3 => self.world.is_database_down = !self.world.is_database_down,
            4 => {
                if let Some(leader) = self.world.leader() {
                    self.world.transfer(leader, node);
                }
            }
            5 => {
                let node = self.world.nodes.get_mut(&node).unwrap();
                node.is_cut_off = !node.is_cut_off;
            }
            _ => {}
        }
    }

    fn note_applied(&mut self) {
        for (node, at, text, is_applied) in &mut self.proposed {
            *is_applied |= self.world.is_applied(*node, *at, text);
        }
    }

    fn heal(&mut self) {
        self.world.is_database_down = false;
        (self.world.lost_percent, self.world.late_percent) = (0, 0);
        self.world.delay_ms = 3;
        for node in self.world.nodes.values_mut() {
            (node.is_paused, node.is_cut_off) = (false, false);
        }
        self.world.run(12_000);
        let leader = self.world.leader().expect("somebody leads after healing");
        let at = self.world.propose(leader, "end").unwrap();
        self.world.run(2_000);
        for node in self.world.nodes.keys() {
            assert!(self.world.is_applied(*node, at, "end"), "node {node}");
        }
        assert!(self.world.faults().is_empty(), "{:?}", self.world.faults());
    }

    /// What a node applied as its own is in the log, once.
    fn account(&self) -> usize {
        let mut texts: Vec<&[u8]> = self.world.written.values().map(|e| e.data.as_ref()).collect();
        texts.retain(|text| !text.is_empty());
        let count = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), count, "nothing is written twice");
        let acked = self.proposed.iter().filter(|(.., is_applied)| *is_applied);
        for (_, at, text, _) in acked.clone() {
            let entry = &self.world.written[&at.1];
            assert_eq!((entry.term, entry.data.as_ref()), (at.0, text.as_bytes()));
        }
        acked.count()
    }
}

#[test]
fn nothing_is_lost_and_nobody_writes_out_of_turn() {
    let (mut acked, mut epochs, mut reads) = (0, 0, 0);
    for seed in 0..70 {
        let mut storm = Storm::new(seed);
        storm.rage();
        storm.heal();
        acked += storm.account();
        epochs += storm.world.database.epoch;
        reads += storm.world.nodes.values().map(|node| node.reads.len()).sum::<usize>();
    }
    assert!(reads > 300, "{reads} reads answered");
    assert!(acked > 2_000, "{acked} acknowledged");
    assert!(epochs > 300, "{epochs} epochs");
}
