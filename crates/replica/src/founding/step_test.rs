//! Founding under loss, repetition and restarts: one cluster or none.

use super::*;

fn candidate(node: u64) -> Candidate {
    Candidate {
        node,
        incarnation: node * 100,
        peer_addr: format!("p{node}"),
        client_addr: format!("c{node}"),
    }
}

struct World {
    nodes: Vec<Founding>,
    promises: Vec<Option<Plan>>,
    started: Vec<Option<Plan>>,
    rng: fastrand::Rng,
    loss_percent: u32,
}

impl World {
    fn new(count: u64, seed: u64, loss_percent: u32) -> Self {
        let mut world = World {
            nodes: Vec::new(),
            promises: vec![None; count as usize],
            started: vec![None; count as usize],
            rng: fastrand::Rng::with_seed(seed),
            loss_percent,
        };
        for node in 1..=count {
            let founding = world.boot(node, count, None);
            world.nodes.push(founding);
        }
        world
    }

    fn boot(&mut self, node: u64, count: u64, promise: Option<Plan>) -> Founding {
        // A ring of seeds: each knows only its neighbour.
        let seeds = vec![format!("p{}", node % count + 1)];
        Founding::new(candidate(node), count as u16, 4, seeds, promise, self.rng.u64(..))
    }

    fn carry_out(&mut self, index: usize, outputs: Vec<FoundingOutput>) {
        for output in outputs {
            match output {
                FoundingOutput::Promise(plan) => {
                    assert!(self.promises[index].is_none(), "a second promise");
                    self.promises[index] = Some(plan);
                }
                FoundingOutput::Start(plan) => self.started[index] = Some(plan),
                FoundingOutput::Ask(addr, message) => self.ask(index, &addr, &message),
            }
        }
    }

    fn lost(&mut self) -> bool {
        self.rng.u32(0..100) < self.loss_percent
    }

    fn ask(&mut self, from: usize, addr: &str, message: &FoundingMessage) {
        let to: usize = addr[1..].parse::<usize>().unwrap() - 1;
        if self.lost() {
            return;
        }
        let answer = if let Some(plan) = &self.started[to] {
            FoundingMessage::Founded(plan.clone())
        } else {
            let bytes = message.encode();
            let message = FoundingMessage::decode(&bytes).expect("round trip");
            let (first, answer) = self.nodes[to].asked(message).expect("no fatal error");
            self.carry_out(to, first);
            answer
        };
        if self.lost() {
            return;
        }
        let outputs = self.nodes[from].answered(answer).expect("no fatal error");
        self.carry_out(from, outputs);
    }

    fn run(&mut self, rounds: usize, restarts: bool) {
        let count = self.nodes.len();
        for _ in 0..rounds {
            for index in 0..count {
                if self.started[index].is_some() {
                    continue;
                }
                if restarts && self.rng.u32(0..100) < 5 {
                    let promise = self.promises[index].clone();
                    self.nodes[index] = self.boot(index as u64 + 1, count as u64, promise);
                }
                let outputs = self.nodes[index].tick();
                self.carry_out(index, outputs);
            }
        }
    }
}

#[test]
fn ch_13_exactly_one_cluster_from_a_ring_of_seeds() {
    // CH-13
    for seed in 0..200 {
        for count in [1, 2, 3, 5] {
            let mut world = World::new(count, seed, 30);
            world.run(400, true);
            let plans: Vec<_> = world.started.iter().flatten().collect();
            assert_eq!(plans.len(), count as usize, "seed {seed}: all have started");
            assert!(plans.iter().all(|plan| *plan == plans[0]), "seed {seed}: one plan");
            assert_eq!(plans[0].members.len(), count as usize);
        }
    }
}

#[test]
fn a_wiped_node_is_refused_under_its_old_id() {
    // F-17
    let mut world = World::new(3, 7, 0);
    world.run(20, false);
    let plan = world.started[0].clone().expect("started");
    let mut me = candidate(2);
    me.incarnation = 999;
    let mut wiped = Founding::new(me, 3, 4, vec!["p1".into()], None, 1);
    let error = wiped.answered(FoundingMessage::Founded(plan.clone())).unwrap_err();
    assert_eq!(error, FoundingError::Wiped { node: 2, cluster: plan.cluster });
    let mut stranger = Founding::new(candidate(9), 3, 4, vec!["p1".into()], None, 1);
    let error = stranger.answered(FoundingMessage::Founded(plan.clone())).unwrap_err();
    assert_eq!(error, FoundingError::NotAMember { node: 9, cluster: plan.cluster });
}

#[test]
fn differing_settings_and_equal_ids_are_named() {
    let mut one = Founding::new(candidate(1), 3, 4, vec![], None, 1);
    let other = Founding::new(candidate(2), 5, 4, vec![], None, 1);
    let FoundingMessage::Hello { .. } = other_hello(&other) else { panic!("a hello") };
    let error = one.asked(other_hello(&other)).unwrap_err();
    assert!(error.to_string().contains("--expect 5"), "{error}");
    let mut twin = candidate(1);
    twin.incarnation = 5;
    let twin = Founding::new(twin, 3, 4, vec![], None, 1);
    let error = one.asked(other_hello(&twin)).unwrap_err();
    assert!(matches!(error, FoundingError::SameId { node: 1, .. }));
}

fn other_hello(node: &Founding) -> FoundingMessage {
    let mut copy = Founding::new(
        node.known().next().expect("itself").clone(),
        if node.known().any(|candidate| candidate.node == 2) { 5 } else { 3 },
        4,
        vec!["p7".into()],
        None,
        1,
    );
    match copy.tick().pop() {
        Some(FoundingOutput::Ask(_, message)) => message,
        other => panic!("expected a question, got {other:?}"),
    }
}

#[test]
fn any_bytes_are_refused_quietly() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..rng.usize(0..64)).map(|_| rng.u8(..)).collect();
        let _ = FoundingMessage::decode(&bytes);
        let _ = Plan::decode(&bytes);
    }
}
