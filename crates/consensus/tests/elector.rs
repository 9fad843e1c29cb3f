//! The elector line by line: what each requirement of set MQ asks, on the engine that ships. Lines with a scenario of
//! their own are in `elections.rs`, those about every order of events in `elector_model.rs`.

mod net;

use ikada_consensus::{Change, Config, NodeId, Reason, Role};
use net::{Net, SHARD};

fn others(net: &Net, node: NodeId) -> Vec<NodeId> {
    net.running().into_iter().filter(|other| *other != node).collect()
}

fn reasons(net: &Net, node: NodeId) -> Vec<Reason> {
    net.nodes[&node].roles.iter().map(|role| role.reason).collect()
}

// MQ-2, MQ-12, MQ-16: a stale leader is answered with the newer term, adopts it and follows.
#[test]
fn b4_48_mq_2_mq_12_mq_16_a_stale_leader_adopts_the_newer_term() {
    let mut net = Net::new(21, &[1, 2, 3]);
    let old = net.settle();
    let before = net.see(old).term(SHARD);
    net.isolate(old);
    net.run(3_000);
    let new = net.settle();
    assert_ne!(new, old);
    net.heal();
    net.run(3_000);
    assert!(net.see(old).term(SHARD) > before);
    assert_eq!(net.see(old).role(SHARD), Some(Role::Follower));
    assert_eq!(net.see(old).leader(SHARD), Some(new));
}

// MQ-3, MQ-4: every leader has a term of its own, a later one a higher one.
#[test]
fn mq_3_mq_4_terms_of_leaders_only_rise() {
    let mut net = Net::new(22, &[1, 2, 3]);
    let mut leader = net.settle();
    let mut term = net.see(leader).term(SHARD);
    for _ in 0..10 {
        net.kill_loudly(leader);
        let next = net.settle();
        let newer = net.see(next).term(SHARD);
        assert!(newer > term, "term {newer} after {term}");
        net.start(leader);
        net.run(500);
        (leader, term) = (next, newer);
    }
}

// MQ-6: what an older leader sends is ignored.
#[test]
fn mq_6_entries_of_an_older_leader_are_ignored() {
    let mut net = Net::new(23, &[1, 2, 3]);
    let old = net.settle();
    net.isolate(old);
    // Appended by the old leader alone; never committed.
    let _ = net.at(old).propose(SHARD, "lost".into());
    net.work(old);
    net.run(3_000);
    net.settle();
    let index = net.commit("kept");
    net.heal();
    net.run(3_000);
    net.agree(index);
    assert!(net.history.values().all(|entry| entry.data != "lost"), "never applied anywhere");
}

// MQ-7, MQ-8, MQ-10, MQ-13: all start as followers and wait at least the election timeout.
#[test]
fn b4_45_mq_7_mq_8_mq_10_mq_13_a_node_waits_before_it_asks() {
    for seed in 0..30 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        net.run(900);
        for node in [1, 2, 3] {
            assert_eq!(net.see(node).role(SHARD), Some(Role::Follower), "seed {seed}");
            assert_eq!(net.see(node).leader(SHARD), None);
        }
    }
}

// MQ-9: a node that hears a leader adopts its term, and is counted by it.
#[test]
fn mq_9_a_returning_node_is_counted_at_once() {
    let mut net = Net::new(24, &[1, 2, 3]);
    let leader = net.settle();
    let away = others(&net, leader)[0];
    net.kill(away);
    let index = net.commit("meanwhile");
    net.start(away);
    net.run(2_000);
    assert_eq!(net.see(away).term(SHARD), net.see(leader).term(SHARD));
    assert_eq!(net.see(away).leader(SHARD), Some(leader));
    let progress = net.see(leader).progress(SHARD);
    let seen = progress.iter().find(|peer| peer.node == away).expect("a member");
    assert!(seen.is_active && seen.matched >= index);
}

// MQ-11, MQ-19, MQ-22: asking without a majority changes nothing, however long it goes on.
#[test]
fn mq_11_mq_19_mq_22_scouting_in_vain_raises_no_term() {
    let mut net = Net::new(25, &[1, 2, 3]);
    let leader = net.settle();
    let lonely = others(&net, leader)[0];
    let term = net.see(lonely).term(SHARD);
    net.isolate(lonely);
    net.run(60_000);
    assert_eq!(net.see(lonely).term(SHARD), term);
    assert!(reasons(&net, lonely).contains(&Reason::NoHeartbeat));
}

// MQ-15: most elections end in the first round.
#[test]
fn mq_15_most_elections_end_in_the_first_round() {
    let mut first = 0;
    for seed in 0..100 {
        let mut net = Net::new(1_000 + seed, &[1, 2, 3]);
        let leader = net.settle();
        let term = net.see(leader).term(SHARD);
        net.kill_loudly(leader);
        let next = net.settle();
        first += u32::from(net.see(next).term(SHARD) == term + 1);
    }
    assert!(first >= 80, "{first} of 100 elections ended in the first round");
}

// MQ-20, MQ-21, MQ-23: who sees a leader supports nobody else, whatever the term.
#[test]
fn mq_20_mq_21_mq_23_a_campaign_against_a_healthy_leader_fails() {
    let mut net = Net::new(26, &[1, 2, 3]);
    let leader = net.settle();
    let term = net.see(leader).term(SHARD);
    let rival = others(&net, leader)[0];
    for _ in 0..20 {
        net.at(rival).campaign(SHARD);
        net.work(rival);
        net.run(500);
    }
    assert_eq!(net.leader(), Some(leader));
    assert_eq!(net.see(leader).term(SHARD), term);
}

// MQ-24, B4-47: nobody names a leader before it has proven itself.
#[test]
fn b4_47_mq_24_a_voter_names_no_leader_before_it_is_heard() {
    let mut net = Net::new(27, &[1, 2, 3]);
    let settled = net.run_until(5_000, |net| {
        for node in [1, 2, 3] {
            if let Some(leader) = net.see(node).leader(SHARD) {
                let term = net.see(node).term(SHARD);
                assert_eq!(net.leaders.get(&term), Some(&leader), "named before it led");
            }
        }
        net.leader().is_some()
    });
    assert!(settled);
}

// MQ-25: a leader that goes is forgotten at once.
#[test]
fn mq_25_a_leader_that_is_gone_is_forgotten_at_once() {
    let mut net = Net::new(28, &[1, 2, 3]);
    let leader = net.settle();
    net.kill_loudly(leader);
    for node in net.running() {
        assert_eq!(net.see(node).leader(SHARD), None);
    }
}

// MQ-30: a node without the newest entries cannot lead; see decision 0001 for why.
#[test]
fn mq_30_a_node_that_is_behind_never_leads() {
    let mut net = Net::new(29, &[1, 2, 3]);
    let leader = net.settle();
    let behind = others(&net, leader)[0];
    net.isolate(behind);
    let index = net.commit("newer");
    net.heal();
    net.kill_loudly(leader);
    net.at(behind).campaign(SHARD);
    net.work(behind);
    let next = net.settle();
    net.agree(index);
    assert!(net.see(next).last_index(SHARD) >= index);
}

fn calm(config: &mut Config) {
    config.election_ticks = 40;
}

// MQ-33: the waits are settings, which can be changed at run time, and so can a priority.
#[test]
fn mq_33_settings_of_the_elector_count() {
    let mut net = Net::tuned(30, &[1, 2, 3], calm);
    net.run(1_900);
    assert_eq!(net.leader(), None, "the longer wait counts");
    let leader = net.settle();
    let chosen = others(&net, leader)[0];
    net.at(chosen).set_priority(SHARD, 10);
    net.kill_loudly(leader);
    assert_eq!(net.settle(), chosen, "preferred when logs are equal");
}

// MQ-33
#[test]
fn mq_33_the_waits_are_changed_at_run_time() {
    let mut net = Net::new(33, &[1, 2, 3]);
    let leader = net.settle();
    for node in [1, 2, 3] {
        net.at(node).set_election_ms(10_000);
        assert_eq!((net.see(node).election_ms(), net.see(node).heartbeat_ms()), (10_000, 1_000));
    }
    let term = net.see(leader).term(SHARD);
    // Calm all the same: heartbeats are fewer, and waited for longer.
    net.run(60_000);
    assert_eq!((net.leader(), net.see(leader).term(SHARD)), (Some(leader), term));
    net.kill(leader);
    net.run(8_900);
    assert_eq!(net.leader(), None, "silence of less than the wait is no reason");
    assert!(net.run_until(25_000, |net| net.leader().is_some()));
    let next = net.settle();
    for node in net.running() {
        net.at(node).set_election_ms(400);
    }
    net.run(1_000);
    net.start(leader);
    net.at(leader).set_election_ms(400);
    net.run(1_000);
    net.kill(next);
    assert!(net.run_until(1_500, |net| net.leader().is_some()), "and shorter again");
}

// MQ-33, blazingmq#1035: what the smaller quorum has already stored is committed when the quorum shrinks.
#[test]
fn mq_33_a_smaller_quorum_commits_what_it_has() {
    let mut shown = 0;
    for seed in 0..20 {
        let mut net = Net::new(seed, &[1, 2, 3, 4]);
        let leader = net.settle();
        let (gone, slow) = (others(&net, leader)[0], others(&net, leader)[1]);
        net.kill(gone);
        let enter =
            net.at(leader).change(SHARD, Change { remove: vec![gone], ..Change::default() });
        let leave = enter.expect("a fit change").1 + 1;
        net.work(leader);
        // The slow voter has the end of the joint phase, and nothing that comes later.
        if !net.run_until(5_000, |net| net.see(slow).last_index(SHARD) >= leave) {
            continue;
        }
        if !net.see(leader).conf(SHARD).is_joint() {
            continue;
        }
        net.cuts.insert((leader, slow));
        let (_, index) = net.at(leader).propose(SHARD, "after".into()).expect("leads");
        net.work(leader);
        let is_committed = |net: &Net| net.see(leader).commit(SHARD) >= index;
        assert!(net.run_until(500, is_committed), "seed {seed}: {}", net.describe());
        assert!(net.see(slow).last_index(SHARD) < index);
        assert_eq!(net.see(leader).conf(SHARD).voters.len(), 3);
        shown += 1;
    }
    assert!(shown > 0, "no seed showed it");
}
