//! The elector as a model, every order of events explored: pre-vote, stickiness, check-quorum, durable votes (MQ-32).
//!
//! What is modelled is the protocol, not the engine: who may ask, who says yes, what a restart forgets. Logs are left out
//! (all equal); time is left out (a timeout may fire whenever nothing forbids it). Messages are lost, repeated and
//! reordered freely: they are a set that only grows, and delivering one is optional.
//!
//! Invariants: no two leaders in one term, whatever is cut or restarted. While a majority hears the leader, neither a
//! node behind a cut link (ping-pong, MQ-18) nor one that comes back (non-sticky leader, MQ-17) changes leader or term.

use std::collections::BTreeSet;

use stateright::{Checker, Model, Property};

const NODES: u8 = 3;
const MAJORITY: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Role {
    Follower,
    /// Asks without raising its term (MQ-19).
    Scout,
    Candidate,
    Leader,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    term: u8,
    /// Durable with the term (B4-50).
    vote: Option<u8>,
    role: Role,
    /// Yes answers to the present question, one bit per node.
    yes: u8,
    /// Whether a leader of this term was heard lately: then nobody else gets a yes (MQ-20, MQ-23).
    hears: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Word {
    MayI,
    Yes,
    Vote,
    Voted,
    Beat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Message {
    from: u8,
    to: u8,
    term: u8,
    word: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    nodes: Vec<Node>,
    sent: BTreeSet<Message>,
    /// Every leadership there ever was: term and node.
    reigns: BTreeSet<(u8, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// The wait for a leader is over.
    TimeOut(u8),
    /// The leader was not heard for a timeout.
    Forget(u8),
    /// A leader finds that a majority does not answer (MQ-26).
    StepDown(u8),
    /// A leader tells all that it leads.
    BeatAll(u8),
    Deliver(Message),
    Restart(u8),
}

/// Which links are cut, whether nodes restart, where the story begins.
struct Elector {
    cut: Vec<(u8, u8)>,
    restarts: bool,
    /// Node 0 leads term 1 and is heard by all that it reaches.
    begins_led: bool,
    term_max: u8,
    planted: bool,
}

impl Elector {
    fn linked(&self, one: u8, other: u8) -> bool {
        !self.cut.contains(&(one, other)) && !self.cut.contains(&(other, one))
    }

    fn ask_all(&self, world: &mut World, from: u8, term: u8, word: Word) {
        for to in (0..NODES).filter(|to| *to != from && self.linked(from, *to)) {
            world.sent.insert(Message { from, to, term, word });
        }
    }

    /// A majority of the others, and itself, can hear it.
    fn reaches_majority(&self, node: u8) -> bool {
        (0..NODES).filter(|other| *other == node || self.linked(node, *other)).count() as u32
            >= MAJORITY
    }

    fn follow(node: &mut Node, term: u8) {
        if term > node.term {
            *node = Node { term, vote: None, role: Role::Follower, yes: 0, hears: false };
        }
    }

    fn deliver(&self, world: &mut World, message: Message) {
        let Message { from, to, term, word } = message;
        let node = &mut world.nodes[usize::from(to)];
        let own = node.term;
        match word {
            // Sees a leader, or leads itself: no, whatever the term (MQ-20, MQ-21).
            Word::MayI if (node.hears || node.role == Role::Leader) && !self.planted => {}
            Word::MayI if term > own => {
                world.sent.insert(Message { from: to, to: from, term, word: Word::Yes });
            }
            Word::Yes if node.role == Role::Scout && term == own + 1 => {
                node.yes |= 1 << from;
                if node.yes.count_ones() >= MAJORITY {
                    *node = Node {
                        term,
                        vote: Some(to),
                        role: Role::Candidate,
                        yes: 1 << to,
                        hears: false,
                    };
                    self.ask_all(world, to, term, Word::Vote);
                }
            }
            // Sticky for real proposals as well (MQ-23).
            Word::Vote
                if (node.hears || node.role == Role::Leader) && term > own && !self.planted => {}
            Word::Vote if term >= own => {
                Self::follow(node, term);
                if node.vote.is_none_or(|vote| vote == from) && node.role == Role::Follower {
                    node.vote = Some(from);
                    world.sent.insert(Message { from: to, to: from, term, word: Word::Voted });
                }
            }
            Word::Voted if node.role == Role::Candidate && term == own => {
                node.yes |= 1 << from;
                if node.yes.count_ones() >= MAJORITY {
                    node.role = Role::Leader;
                    world.reigns.insert((term, to));
                }
            }
            Word::Beat if term >= own => {
                Self::follow(node, term);
                if node.role != Role::Leader {
                    node.role = Role::Follower;
                    node.hears = true;
                }
            }
            _ => {}
        }
    }
}

impl Model for Elector {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let fresh = |term| Node { term, vote: None, role: Role::Follower, yes: 0, hears: false };
        let mut world = World {
            nodes: (0..NODES).map(|_| fresh(u8::from(self.begins_led))).collect(),
            sent: BTreeSet::new(),
            reigns: BTreeSet::new(),
        };
        if self.begins_led {
            for node in 0..NODES {
                world.nodes[usize::from(node)].vote = Some(0);
                world.nodes[usize::from(node)].hears = node != 0 && self.linked(0, node);
            }
            world.nodes[0].role = Role::Leader;
            world.reigns.insert((1, 0));
        }
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (position, node) in world.nodes.iter().enumerate() {
            let id = position as u8;
            let led = |leader: u8| {
                let other = &world.nodes[usize::from(leader)];
                leader != id
                    && other.role == Role::Leader
                    && other.term == node.term
                    && self.linked(id, leader)
            };
            let is_led = (0..NODES).any(led);
            match node.role {
                Role::Leader => {
                    actions.push(Action::BeatAll(id));
                    if !self.reaches_majority(id) {
                        actions.push(Action::StepDown(id));
                    }
                }
                // Heartbeats arrive as long as the link is whole and the leader leads.
                _ if node.hears && is_led => {}
                _ if node.hears => actions.push(Action::Forget(id)),
                _ if node.term < self.term_max => actions.push(Action::TimeOut(id)),
                _ => {}
            }
            if self.restarts {
                actions.push(Action::Restart(id));
            }
        }
        actions.extend(world.sent.iter().copied().map(Action::Deliver));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::TimeOut(id) => {
                let node = &mut world.nodes[usize::from(id)];
                node.role = Role::Scout;
                node.yes = 1 << id;
                let term = node.term + 1;
                self.ask_all(&mut world, id, term, Word::MayI);
            }
            Action::Forget(id) => world.nodes[usize::from(id)].hears = false,
            Action::StepDown(id) => world.nodes[usize::from(id)].role = Role::Follower,
            Action::BeatAll(id) => {
                let term = world.nodes[usize::from(id)].term;
                self.ask_all(&mut world, id, term, Word::Beat);
            }
            Action::Deliver(message) => self.deliver(&mut world, message),
            Action::Restart(id) => {
                // Term and vote survive; everything else is forgotten.
                let Node { term, vote, .. } = world.nodes[usize::from(id)];
                let vote = if self.planted { None } else { vote };
                world.nodes[usize::from(id)] =
                    Node { term, vote, role: Role::Follower, yes: 0, hears: false };
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties =
            vec![Property::always("one leader per term", |_: &Elector, world: &World| {
                let terms: BTreeSet<u8> = world.reigns.iter().map(|(term, _)| *term).collect();
                terms.len() == world.reigns.len()
            })];
        if self.begins_led {
            properties.push(Property::always("the leader stays", |_: &Elector, world: &World| {
                world.reigns.len() == 1 && world.nodes.iter().all(|node| node.term == 1)
            }));
        } else {
            properties.push(Property::sometimes("somebody leads", |_: &Elector, world: &World| {
                !world.reigns.is_empty()
            }));
        }
        properties
    }
}

fn check(elector: Elector) -> usize {
    let checker = elector.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

// MQ-1, MQ-4, MQ-19, MQ-22, B4-46, B4-50
#[test]
fn b4_46_mq_32_no_two_leaders_in_a_term_with_restarts() {
    let elector =
        Elector { cut: vec![], restarts: true, begins_led: false, term_max: 1, planted: false };
    assert!(check(elector) > 1_000, "the model explores");
}

#[test]
fn mq_18_a_cut_link_changes_no_leader_in_any_order_of_events() {
    let elector = Elector {
        cut: vec![(0, 1)],
        restarts: false,
        begins_led: true,
        term_max: 3,
        planted: false,
    };
    assert!(check(elector) > 3, "the model explores");
}

#[test]
fn mq_17_a_node_that_comes_back_changes_no_leader_in_any_order_of_events() {
    // Node 2 was away long enough to have forgotten the leader; now it is linked again.
    struct Back(Elector);
    let mut elector = Elector {
        cut: vec![(0, 2), (1, 2)],
        restarts: false,
        begins_led: true,
        term_max: 3,
        planted: false,
    };
    let away = elector.init_states().remove(0);
    elector.cut.clear();
    let back = Back(elector);
    let mut seen = BTreeSet::new();
    let mut open = vec![away];
    let mut count = 0;
    while let Some(world) = open.pop() {
        count += 1;
        assert!(
            world.reigns.len() == 1 && world.nodes.iter().all(|node| node.term == 1),
            "{world:?}"
        );
        let mut actions = Vec::new();
        back.0.actions(&world, &mut actions);
        for next in actions.into_iter().filter_map(|action| back.0.next_state(&world, action)) {
            if seen.insert(format!("{next:?}")) {
                open.push(next);
            }
        }
    }
    assert!(count > 3, "the model explores");
}

// The model can fail: without durable votes and stickiness a counterexample is found.
#[test]
fn mq_32_the_model_finds_a_forgotten_vote() {
    let elector =
        Elector { cut: vec![], restarts: true, begins_led: false, term_max: 1, planted: true };
    let checker = elector.checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery("one leader per term").is_some(), "two votes in one term are found");
}
