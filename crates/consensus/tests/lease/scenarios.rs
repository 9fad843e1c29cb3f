//! One scenario per promise.

use bytes::Bytes;
use ikada_consensus::lease::{Answer, Chain, LeaseConfig, Work};
use ikada_consensus::{Entry, EntryKind, Reason, Role, Start};

use crate::database::{Database, Life};
use crate::world::{World, config};

fn settled(seed: u64, count: u64) -> (World, u64) {
    let mut world = World::new(seed, count);
    world.run(1_000);
    let leader = world.leader().expect("somebody takes a lease that nobody has");
    (world, leader)
}

fn others(world: &World, leader: u64) -> Vec<u64> {
    world.nodes.keys().copied().filter(|node| *node != leader).collect()
}

#[test]
fn ls_1_one_leads_and_the_others_follow_it() {
    let (mut world, leader) = settled(1, 3);
    let at = world.propose(leader, "a").unwrap();
    world.run(1_500);
    for (id, node) in &world.nodes {
        assert!(world.is_applied(*id, at, "a"), "node {id}");
        assert_eq!(node.consensus.leader(0), Some(leader));
    }
    let wakes = world.wakes;
    world.run(60_000);
    assert!(world.wakes - wakes < 6_000, "an idle node sleeps: {} wakes", world.wakes - wakes);
    assert_eq!(world.leader(), Some(leader), "a lease that is renewed stays");
    assert_eq!(world.database.epoch, 2);
    let follower = others(&world, leader)[0];
    assert!(world.propose(follower, "b").is_none(), "LS-11: a follower names the holder");
}

#[test]
fn ls_7_a_dead_holder_is_followed_after_its_ttl() {
    let (mut world, leader) = settled(2, 3);
    world.nodes.remove(&leader);
    world.run(config().ttl_ms + 1_000);
    let next = world.leader().expect("ttl and a second");
    assert_ne!(next, leader);
    assert_eq!(world.database.epoch, 3, "LS-9: the epoch grows with each change of holder");
}

#[test]
fn ls_7_a_release_is_followed_at_once_by_whom_it_names() {
    let (mut world, leader) = settled(3, 3);
    let at = world.propose(leader, "last").unwrap();
    let chosen = others(&world, leader)[1];
    assert!(world.transfer(leader, chosen));
    assert!(world.propose(leader, "late").is_none(), "no more while it hands over");
    world.run(700);
    assert_eq!(world.leader(), Some(chosen));
    assert!(world.is_applied(chosen, at, "last"));
    let reasons = world.nodes[&leader].roles.iter().map(|role| role.reason);
    assert!(reasons.into_iter().any(|reason| reason == Reason::Transferred));
}

#[test]
fn ls_9_a_holder_that_was_paused_cannot_write() {
    let (mut world, leader) = settled(4, 3);
    world.nodes.get_mut(&leader).unwrap().is_paused = true;
    world.run(10_000);
    let next = world.leader().unwrap();
    let written = world.database.last_index();
    // It wakes up and acts before it has looked at any clock.
    let at = world.propose(leader, "stale").expect("it still believes that it leads");
    world.checks_one_leader = false;
    world.nodes.get_mut(&leader).unwrap().is_paused = false;
    world.run(2_000);
    assert!(world.written.get(&at.1).is_none_or(|entry| entry.data.as_ref() != b"stale"));
    assert_eq!(world.database.last_index(), written);
    assert_eq!(world.nodes[&leader].consensus.role(0), Some(Role::Follower));
    assert_eq!(world.leader(), Some(next));
}

#[test]
fn ls_6_p_3_a_holder_stops_by_itself_when_it_cannot_renew() {
    let (mut world, leader) = settled(5, 3);
    world.is_database_down = true;
    world.run(config().ttl_ms);
    assert_eq!(world.leader(), None, "LS-6, LS-14: store down, nobody leads");
    let last = world.nodes[&leader].roles.last().unwrap();
    assert_eq!(last.reason, Reason::LeaseRanOut);
    world.is_database_down = false;
    world.run(2_000);
    assert!(world.leader().is_some());
}

// P1: as with a copy of a node's folder. Late words of a process that died are no such thing: they come once.
#[test]
fn p_1_a_process_that_meets_another_under_its_id_says_so_and_ends() {
    let (mut world, leader) = settled(18, 3);
    world.checks_one_leader = false;
    for taking in 1..=3 {
        assert!(world.faults().is_empty(), "after {taking}: {:?}", world.faults());
        world.database.epoch += 1;
        world.database.holder = Some(Life { node: leader, number: 99 });
        world.run(3_000);
    }
    let faults = world.faults();
    assert!(faults.iter().all(|what| what.contains("another process runs as node")), "{faults:?}");
    assert_eq!(faults.len(), 1, "the one that saw it ends, the others follow: {faults:?}");
    assert!(world.propose(leader, "late").is_none());
}

#[test]
fn ls_4_ls_13_the_usual_settings_leave_room_for_two_lost_renewals() {
    let usual = config();
    assert!(usual.is_sound());
    assert_eq!(usual.ttl_ms, 5_000);
    assert!(usual.renew_ms * 3 <= usual.ttl_ms);
    let slow = LeaseConfig { renew_ms: 3_000, ..usual };
    assert!(!slow.is_sound(), "one missed renewal would lose the lease");
}

// LS-5 wants to step down at any error; the lease holds until its time is over, and the epoch fences either way.
#[test]
fn ls_5_a_failed_renewal_is_no_loss_and_a_lease_that_is_gone_is() {
    let (mut world, leader) = settled(17, 3);
    world.is_database_down = true;
    world.run(config().renew_ms + 500);
    assert_eq!(world.leader(), Some(leader), "an error says nothing about the lease");
    world.is_database_down = false;
    world.database.epoch += 1;
    world.database.holder = None;
    world.checks_one_leader = false;
    world.run(config().renew_ms + 500);
    let roles = &world.nodes[&leader].roles;
    assert!(roles.iter().any(|role| role.reason == Reason::LeaseLost), "an answer does: {roles:?}");
}

#[test]
fn ls_11_not_leading_is_an_answer_that_names_the_holder() {
    let (mut world, leader) = settled(18, 3);
    world.run(1_000);
    let follower = others(&world, leader)[0];
    let node = world.nodes.get_mut(&follower).unwrap();
    let refused = node.consensus.propose(0, Bytes::from_static(b"x")).unwrap_err();
    assert_eq!(refused.leader, Some(leader));
}

#[test]
fn ls_13_two_lost_renewals_do_no_harm() {
    let (mut world, leader) = settled(6, 3);
    world.is_database_down = true;
    world.run(2 * config().renew_ms);
    world.is_database_down = false;
    world.run(3_000);
    assert_eq!(world.leader(), Some(leader));
    assert_eq!(world.database.epoch, 2);
}

#[test]
fn p_2_an_older_database_is_a_fault() {
    let (mut world, leader) = settled(7, 3);
    let dump = world.database.clone();
    world.propose(leader, "a").unwrap();
    world.run(1_000);
    world.database = dump;
    world.propose(leader, "b").unwrap();
    world.run(2_000);
    assert!(world.faults().iter().any(|what| what.contains("older state")), "{:?}", world.faults());
}

#[test]
fn p_2_a_holder_that_writes_nothing_notices_too() {
    let (mut world, leader) = settled(19, 1);
    world.run(100);
    let dump = world.database.clone();
    world.propose(leader, "a").unwrap();
    world.run(100);
    world.database = Database { clock_ms: world.database.clock_ms, ..dump };
    world.run(2 * config().ttl_ms);
    assert!(world.faults().iter().any(|what| what.contains("older state")), "{:?}", world.faults());
}

#[test]
fn p_2_an_older_epoch_is_a_fault_also_after_a_restart() {
    let (mut world, leader) = settled(8, 3);
    let dump = world.database.clone();
    world.nodes.remove(&leader);
    world.run(8_000);
    assert_eq!(world.database.epoch, 3);
    let next = world.leader().unwrap();
    world.database = dump;
    world.start(next, 1_000);
    world.run(1_000);
    assert!(!world.nodes[&next].faults.is_empty(), "its disk remembers the epoch");
}

#[test]
fn p_2_a_log_set_back_while_all_were_down_is_a_fault() {
    let (mut world, leader) = settled(15, 3);
    world.run(2_000);
    let dump = world.database.clone();
    world.propose(leader, "a").unwrap();
    world.run(3_000);
    assert_eq!(world.database.epoch, dump.epoch, "the epoch tells nothing");
    world.database = dump;
    for node in 1..=3 {
        world.start(node, 1_000);
    }
    world.run(1_000);
    for node in world.nodes.values() {
        let said = node.faults.iter().any(|fault| fault.what.contains("older state"));
        assert!(said, "node {}: its disk remembers how far the log reached", node.life.node);
    }
}

#[test]
fn p_4_a_holder_that_dies_after_the_clock_was_moved_back_is_followed() {
    let (mut world, leader) = settled(16, 3);
    world.database.clock_ms -= 900_000;
    world.nodes.remove(&leader);
    world.run(2 * config().ttl_ms + 1_000);
    assert!(world.leader().is_some_and(|next| next != leader), "not a quarter of an hour later");
    assert_eq!(world.database.epoch, 3);
}

#[test]
fn p_4_a_database_clock_that_leaps_costs_a_leader_but_no_entry() {
    let (mut world, leader) = settled(9, 3);
    let at = world.propose(leader, "a").unwrap();
    world.run(100);
    world.database.clock_ms += 3_600_000;
    world.checks_one_leader = false;
    world.run(10_000);
    world.database.clock_ms -= 3_600_000;
    world.run(10_000);
    let leader = world.leader().expect("an hour ahead or behind, somebody leads");
    assert!(world.is_applied(leader, at, "a"));
    assert!(world.faults().is_empty());
}

#[test]
fn a_restarted_holder_takes_its_lease_at_once_with_a_new_epoch() {
    let (mut world, leader) = settled(10, 3);
    let epoch = world.database.epoch;
    world.start(leader, 1_000);
    world.run(200);
    assert_eq!(world.leader(), Some(leader), "no need to wait for the ttl");
    assert_eq!(world.database.epoch, epoch + 1);
}

#[test]
fn a_reading_that_began_before_the_lease_was_taken_does_not_hold_the_new_holder_up() {
    for seed in 0..40 {
        let (mut world, leader) = settled(seed, 3);
        world.nodes.remove(&leader);
        world.delay_ms = 100;
        while world.database.epoch < 3 {
            world.step();
        }
        // The answer to the taking, what is left of an early reading, and a reading of its own: no poll between them.
        world.run(5 * world.delay_ms);
        assert!(world.leader().is_some(), "seed {seed}");
    }
}

#[test]
fn a_reader_sees_what_was_written_before_it_asked() {
    let (mut world, leader) = settled(11, 3);
    assert!(world.read(leader));
    world.run(50);
    assert_eq!(world.nodes[&leader].reads.len(), 1, "a new holder answers before anybody writes");
    let (_, index) = world.propose(leader, "a").unwrap();
    world.run(50);
    let node = world.nodes.get_mut(&leader).unwrap();
    node.consensus.read(0, 7).unwrap();
    world.run(50);
    let answered = world.nodes[&leader].reads[&7];
    assert!(answered.is_some_and(|at| at >= index), "{answered:?}");
    // Somebody else took over: a read that began before must not be answered.
    world.nodes.get_mut(&leader).unwrap().is_paused = true;
    world.run(8_000);
    world.checks_one_leader = false;
    let node = world.nodes.get_mut(&leader).unwrap();
    node.consensus.read(0, 8).unwrap();
    node.reads.insert(8, None);
    node.is_paused = false;
    world.run(3_000);
    assert_eq!(world.nodes[&leader].reads.get(&8), None, "lost, not answered");
}

#[test]
fn a_node_behind_the_purged_log_loads_the_snapshot() {
    let (mut world, leader) = settled(12, 3);
    let slow = others(&world, leader)[0];
    world.nodes.get_mut(&slow).unwrap().is_paused = true;
    for step in 0..50 {
        world.propose(leader, &format!("t{step}")).unwrap();
        world.run(20);
    }
    let node = world.nodes.get_mut(&leader).unwrap();
    let last = node.applied.last().unwrap();
    let start = Start { index: last.index, term: last.term };
    let conf = node.consensus.conf(0);
    node.consensus.compact(0, start, conf);
    world.run(100);
    assert_eq!(world.database.purged_index, start.index);
    world.nodes.get_mut(&slow).unwrap().is_paused = false;
    let at = world.propose(leader, "after").unwrap();
    world.run(2_000);
    assert!(world.is_applied(slow, at, "after"));
    assert_eq!(world.nodes[&slow].start, start);
}

#[test]
fn membership_is_not_changed_through_this_log() {
    let (mut world, leader) = settled(13, 3);
    let node = world.nodes.get_mut(&leader).unwrap();
    let change = ikada_consensus::Change::default();
    let refused = node.consensus.change(0, change).unwrap_err();
    assert!(refused.to_string().contains("database"), "{refused}");
}

/// An append of the holder before arrives so many milliseconds after somebody else has taken the lease. What goes wrong?
fn harm_of_a_late_append(after_ms: u64, checks_epoch: bool) -> Option<String> {
    let (mut world, leader) = settled(14, 3);
    world.database.checks_epoch = checks_epoch;
    world.delay_ms = 20;
    let (life, epoch) = (world.nodes[&leader].life, world.database.epoch);
    world.nodes.remove(&leader);
    while world.database.epoch == epoch {
        world.step();
    }
    world.run(after_ms);
    let (index, kind) = (world.database.last_index() + 1, EntryKind::Normal);
    let data = Bytes::from_static(b"late");
    let entry = Entry { term: epoch, index, kind, data, context: Bytes::new() };
    let after = world.database.chains.last().map_or(Chain::UNKNOWN, |(.., chain)| *chain);
    let work = Work::Append { epoch, after, entries: vec![entry.clone()] };
    let answer = world.database.carry_out(life, &work);
    if world.database.log.iter().rev().nth(1).is_some_and(|before| before.term > epoch) {
        return Some("P1: an old epoch after a new one".to_owned());
    }
    world.run(1_000);
    let is_written = world.written.get(&index) == Some(&entry);
    assert!(!is_written || matches!(answer, Answer::Appended { .. }));
    world.faults().pop()
}

/// The check of the epoch is what makes it safe: without it the very same lateness does harm.
#[test]
fn ls_9_an_append_that_comes_after_a_takeover_is_refused_whenever_it_comes() {
    for after_ms in 0..150 {
        assert_eq!(harm_of_a_late_append(after_ms, true), None, "{after_ms} ms");
    }
    let harms: Vec<String> = (0..150).filter_map(|ms| harm_of_a_late_append(ms, false)).collect();
    assert!(harms.iter().any(|harm| harm.contains("somebody else wrote")), "{harms:?}");
    assert!(harms.iter().any(|harm| harm.contains("P1")), "{harms:?}");
}
