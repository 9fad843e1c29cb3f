//! A database that is restored to an older state, as a model, every order of events explored (P2).
//!
//! What is modelled: who knows which entries, an older state that comes back once at any moment, takings and appends that the
//! database carries out only for those who know nothing else, readings that compare, and the mark. Time and lost messages are left
//! out; `lease_model` has those.
//!
//! Invariants: nobody reads on in, or writes to, a log that is not a continuation of what it knows. With lengths alone compared, as if
//! entries had no identity, counterexamples are found.

use stateright::{Checker, Model, Property};

const NODES: u8 = 2;
/// Who has the lease under which epoch; nobody is node 0 under epoch 0.
type Lease = (u8, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    /// The entries that it has applied.
    known: Vec<u8>,
    /// The lease as last seen.
    seen: Lease,
    leads: bool,
    halted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    nodes: Vec<Node>,
    lease: Lease,
    /// No two entries ever written are the same.
    log: Vec<u8>,
    marked: bool,
    /// What was saved, and whether it came back.
    older: Option<(Lease, Vec<u8>)>,
    restored: bool,
    next: u8,
    /// A node went on with a log that is not what it knows.
    strayed: bool,
    /// Somebody wrote after the older state came back.
    forked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Save,
    Restore,
    Take(u8),
    Read(u8),
    Append(u8),
    Die(u8),
}

struct Restores {
    /// Entries are compared, not only counted.
    compares: bool,
    epoch_max: u8,
    entries_max: u8,
}

impl Restores {
    /// Whether the database would say that its log continues this one.
    fn continues(&self, log: &[u8], known: &[u8]) -> bool {
        if self.compares { log.starts_with(known) } else { log.len() >= known.len() }
    }

    fn take(&self, world: &mut World, id: u8) {
        let node = &mut world.nodes[usize::from(id) - 1];
        let fits = self.continues(&world.log, &node.known) && world.lease.1 >= node.seen.1;
        if !world.marked && fits {
            world.lease = (id, world.lease.1 + 1);
            (node.seen, node.leads) = (world.lease, false);
        }
    }

    fn read(&self, world: &mut World, id: u8) {
        let node = &mut world.nodes[usize::from(id) - 1];
        let is_twice = world.lease.1 == node.seen.1 && world.lease.0 != node.seen.0;
        let is_older = world.lease.1 < node.seen.1 || (is_twice && node.seen.1 > 0);
        if world.marked || is_older || !self.continues(&world.log, &node.known) {
            world.marked = true;
            (node.halted, node.leads) = (true, false);
            return;
        }
        world.strayed |= !world.log.starts_with(&node.known);
        node.known.clone_from(&world.log);
        node.seen = world.lease;
        node.leads = world.lease.0 == id;
    }

    fn append(&self, world: &mut World, id: u8) {
        let node = &mut world.nodes[usize::from(id) - 1];
        let ends = world.log.len() == node.known.len();
        let fits = ends && self.continues(&world.log, &node.known);
        if world.marked || world.lease != node.seen || !fits {
            // Refused: the next step is a reading.
            node.leads = false;
            return;
        }
        world.strayed |= world.log != node.known;
        world.log.push(world.next);
        node.known.push(world.next);
        world.next += 1;
        world.forked |= world.restored;
    }
}

impl Model for Restores {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World { nodes: vec![Node::default(); usize::from(NODES)], ..World::default() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        match &world.older {
            None => actions.push(Action::Save),
            Some(_) if !world.restored => actions.push(Action::Restore),
            Some(_) => {}
        }
        for id in 1..=NODES {
            let node = &world.nodes[usize::from(id) - 1];
            if node.halted {
                continue;
            }
            actions.push(Action::Read(id));
            if world.lease.1 < self.epoch_max {
                actions.push(Action::Take(id));
            }
            if node.leads && world.next < self.entries_max {
                actions.push(Action::Append(id));
            }
            actions.push(Action::Die(id));
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Save => world.older = Some((world.lease, world.log.clone())),
            Action::Restore => {
                let (lease, log) = world.older.clone()?;
                (world.lease, world.log, world.restored) = (lease, log, true);
            }
            Action::Take(id) => self.take(&mut world, id),
            Action::Read(id) => self.read(&mut world, id),
            Action::Append(id) => self.append(&mut world, id),
            // Its disk remembers what it knew and the epoch; that it led, it has to see again.
            Action::Die(id) => world.nodes[usize::from(id) - 1].leads = false,
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(STRAYED, |_: &Restores, world: &World| !world.strayed),
            Property::sometimes("others go on, and are stopped", |_: &Restores, world: &World| {
                world.forked && world.nodes.iter().all(|node| node.halted)
            }),
            Property::sometimes("nobody misses anything", |_: &Restores, world: &World| {
                world.forked
                    && !world.marked
                    && world.nodes.iter().all(|node| node.known == world.log)
            }),
        ]
    }
}

const STRAYED: &str = "whoever goes on continues what it knows";

fn restores(compares: bool) -> Restores {
    Restores { compares, epoch_max: 4, entries_max: 4 }
}

#[test]
fn p_2_nobody_goes_on_with_another_log_in_any_order_of_events() {
    let checker = restores(true).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let count = checker.unique_state_count();
    assert!(count > 1_000, "the model explores {count} states");
}

// The model can fail: a log that was written to in the place of what is missing has the length that is expected.
#[test]
fn p_2_the_model_finds_logs_that_are_told_by_their_length() {
    let checker = restores(false).checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery(STRAYED).is_some(), "a node that goes on with another log is found");
}
