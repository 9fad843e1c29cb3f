//! Elections: who leads after starts, deaths, cuts and orders.

mod net;

use bytes::Bytes;
use ikada_consensus::{Change, Config, Entry, EntryKind, NodeId, Reason, Role};
use net::{Net, SHARD};

fn leadership_changes(net: &Net) -> usize {
    net.leaders.len()
}

#[test]
fn mq_1_three_and_five_nodes_elect_one_leader() {
    for voters in [&[1, 2, 3][..], &[1, 2, 3, 4, 5][..]] {
        let mut net = Net::new(1, voters);
        let leader = net.settle();
        let term = net.see(leader).term(SHARD);
        for node in voters {
            assert_eq!(net.see(*node).leader(SHARD), Some(leader));
            assert_eq!(net.see(*node).term(SHARD), term);
            assert_eq!(net.nodes[node].roles[0].reason, Reason::Started);
        }
        net.run(5_000);
        assert_eq!(net.leader(), Some(leader));
        assert_eq!(net.see(leader).term(SHARD), term);
    }
}

#[test]
fn b4_44_every_cold_start_settles_within_five_seconds() {
    // B4-44
    for seed in 0..200 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        for node in [1, 2, 3] {
            assert_eq!(net.see(node).role(SHARD), Some(Role::Follower));
            assert_eq!(net.see(node).leader(SHARD), None);
        }
        let settled = net.run_until(5_000, |net| {
            net.leader().is_some_and(|leader| net.see(leader).is_settled(SHARD))
        });
        assert!(settled, "seed {seed} did not settle");
    }
}

#[test]
fn b4_51_mq_28_a_single_node_leads_at_once() {
    // B4-51, MQ-28
    let mut net = Net::new(1, &[7]);
    net.run(20);
    assert_eq!(net.leader(), Some(7));
    let index = net.commit("alone");
    net.kill(7);
    net.start(7);
    net.run(20);
    assert_eq!(net.leader(), Some(7));
    net.agree(index);
}

#[test]
fn b4_43_mq_1_a_majority_counts_the_node_itself() {
    // B4-43, MQ-1: two of four are no majority, three are.
    let mut net = Net::new(3, &[1, 2, 3, 4]);
    net.kill(3);
    net.kill(4);
    net.run(10_000);
    assert_eq!(net.leader(), None);
    assert!(net.leaders.is_empty());
    net.start(3);
    net.settle();
}

#[test]
fn b4_49_mq_14_a_dead_leader_is_replaced_and_follows_when_it_returns() {
    // B4-49, MQ-14
    let mut net = Net::new(5, &[1, 2, 3]);
    let first = net.settle();
    let term = net.see(first).term(SHARD);
    net.kill(first);
    let second = net.settle();
    assert_ne!(first, second);
    assert!(net.see(second).term(SHARD) > term);
    net.start(first);
    net.run(3_000);
    assert_eq!(net.leader(), Some(second));
    assert_eq!(net.see(first).leader(SHARD), Some(second));
}

// CH-15: silence makes a candidate after a time that is drawn and bounded; a majority makes it leader.
#[test]
fn ch_15_silence_makes_a_candidate_after_a_drawn_and_bounded_time() {
    let mut waits = Vec::new();
    for seed in 0..50 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let first = net.settle();
        let died_ms = net.now_ms;
        net.kill(first);
        let stirred = net.run_until(10_000, |net| {
            let stirs = |role| matches!(role, Some(Role::PreCandidate | Role::Candidate));
            net.running().into_iter().any(|node| stirs(net.see(node).role(SHARD)))
        });
        assert!(stirred, "seed {seed}");
        waits.push(net.now_ms - died_ms);
        let second = net.settle();
        let voted = net.running().into_iter().filter(|node| {
            let seen = net.see(*node);
            seen.leader(SHARD) == Some(second) && seen.term(SHARD) == net.see(second).term(SHARD)
        });
        assert!(voted.count() >= 2, "seed {seed}: two of three follow");
        let silent = |node: &NodeId| {
            net.nodes[node].roles.iter().any(|role| role.reason == Reason::NoHeartbeat)
        };
        assert!(net.running().iter().any(silent), "seed {seed}: for want of heartbeats");
    }
    // One to two seconds after the last heartbeat, which was at most 100 ms before the end, and one tick of 50 ms.
    assert!(waits.iter().all(|wait| (850..=2_100).contains(wait)), "{waits:?}");
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 5, "drawn anew each time: {waits:?}");
}

// CH-15: nobody votes for a log that lacks what it has itself.
#[test]
fn ch_15_a_node_that_missed_a_commit_never_leads() {
    for seed in 0..50 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let leader = net.settle();
        let late = (1..=3).find(|node| *node != leader).expect("three nodes");
        let other = (1..=3).find(|node| ![leader, late].contains(node)).expect("three nodes");
        net.isolate(late);
        let index = net.commit("missed by one");
        net.kill(leader);
        net.heal();
        // It even asks first.
        net.at(late).campaign(SHARD);
        net.work(late);
        assert_eq!(net.settle(), other, "seed {seed}");
        assert!(!net.leaders.values().any(|node| *node == late), "seed {seed}");
        net.run(2_000);
        net.agree(index);
    }
}

#[test]
fn mq_27_a_change_of_role_names_the_votes_that_decided_it() {
    // MQ-27, MQ-22
    let mut net = Net::new(5, &[1, 2, 3]);
    let first = net.settle();
    net.kill(first);
    let second = net.settle();
    let third = 6 - first - second;
    let roles = &net.nodes[&second].roles;
    let both = vec![second, third];
    let asked = roles.iter().rfind(|role| role.role == Role::Candidate).expect("it asked");
    let scouted = asked.pre_votes.as_ref().expect("a pre-vote came first");
    assert_eq!((&scouted.granted, scouted.refused.len()), (&both, 0));
    assert_eq!(asked.votes, None, "no vote has ended yet");
    let won = roles.iter().rfind(|role| role.role == Role::Leader).expect("it won");
    assert_eq!(won.votes.as_ref().expect("a vote").granted, both);
    assert_eq!(won.pre_votes, asked.pre_votes);
    let voter = net.nodes[&third].roles.iter().find(|role| role.term == won.term);
    assert_eq!(voter.expect("it took part").vote, Some(second));
}

#[test]
fn mq_27_a_campaign_in_vain_names_who_refused() {
    // MQ-27: a node that missed an entry asks first, and is told no by the one that has it.
    let mut net = Net::new(7, &[1, 2, 3]);
    let leader = net.settle();
    let behind = if leader == 1 { 2 } else { 1 };
    let other = 6 - leader - behind;
    net.isolate(behind);
    net.commit("missed");
    net.kill_loudly(leader);
    net.heal();
    net.at(behind).campaign(SHARD);
    net.work(behind);
    assert_eq!(net.settle(), other);
    let mut ballots = net.nodes[&behind].roles.iter().filter_map(|role| role.pre_votes.as_ref());
    assert!(ballots.any(|it| it.granted == [behind] && it.refused == [other]));
}

#[test]
fn a_refused_connection_starts_the_next_election_within_a_second() {
    let mut gaps = Vec::new();
    for seed in 0..50 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let first = net.settle();
        let died_ms = net.now_ms;
        net.kill_loudly(first);
        for node in net.running() {
            assert_eq!(net.see(node).leader(SHARD), None, "the leader is forgotten at once");
        }
        net.settle();
        gaps.push(net.now_ms - died_ms);
        let survivor = net.leader().expect("settled");
        let reasons: Vec<Reason> =
            net.nodes[&survivor].roles.iter().map(|role| role.reason).collect();
        assert!(reasons.contains(&Reason::LeaderConnectionLost), "{reasons:?}");
    }
    gaps.sort_unstable();
    assert!(gaps[gaps.len() / 2] < 300, "median gap {} ms", gaps[gaps.len() / 2]);
    assert!(gaps[gaps.len() - 1] < 3_000, "worst gap {} ms", gaps[gaps.len() - 1]);
}

#[test]
fn a_successful_reconnect_changes_nothing() {
    let mut net = Net::new(4, &[1, 2, 3]);
    let leader = net.settle();
    let follower = if leader == 1 { 2 } else { 1 };
    net.at(leader).peer_unreachable(follower);
    net.work(leader);
    net.run(3_000);
    assert_eq!(leadership_changes(&net), 1);
}

#[test]
fn mq_17_an_isolated_node_returns_without_disturbing() {
    // MQ-17, MQ-19, MQ-20: the term does not move.
    let mut net = Net::new(6, &[1, 2, 3, 4]);
    let leader = net.settle();
    let term = net.see(leader).term(SHARD);
    let lonely = (1..=4).find(|node| *node != leader).expect("four nodes");
    net.isolate(lonely);
    net.run(180_000);
    assert_eq!(net.see(lonely).leader(SHARD), None);
    net.heal();
    net.run(5_000);
    assert_eq!(net.leader(), Some(leader));
    assert_eq!(net.see(leader).term(SHARD), term);
    assert_eq!(net.see(lonely).leader(SHARD), Some(leader));
}

#[test]
fn mq_18_one_cut_link_changes_no_leader() {
    // MQ-18: only the link between the leader and one follower is cut.
    for seed in 0..20 {
        let mut net = Net::new(seed, &[1, 2, 3, 4]);
        let leader = net.settle();
        let other = (1..=4).find(|node| *node != leader).expect("four nodes");
        net.cut(leader, other);
        if seed % 2 == 0 {
            // The closed connection is noticed on both ends.
            let now_ms = net.now_ms;
            net.at(other).peer_gone(leader, now_ms);
            net.at(leader).peer_gone(other, now_ms);
        }
        net.run(60_000);
        assert_eq!(leadership_changes(&net), 1, "seed {seed}");
        net.heal();
        net.run(3_000);
        assert_eq!(net.leader(), Some(leader));
    }
}

#[test]
fn mq_26_a_leader_without_a_majority_steps_down() {
    // MQ-26
    let mut net = Net::new(8, &[1, 2, 3]);
    let leader = net.settle();
    net.isolate(leader);
    net.run(3_000);
    assert_ne!(net.see(leader).role(SHARD), Some(Role::Leader));
    let reasons: Vec<Reason> = net.nodes[&leader].roles.iter().map(|role| role.reason).collect();
    assert!(reasons.contains(&Reason::QuorumLost), "{reasons:?}");
    let next = net.settle();
    assert_ne!(next, leader);
}

#[test]
fn a_bridge_partition_finds_a_leader() {
    // Five nodes in two pairs; only one node sees both: it, or one that it follows, must lead.
    for seed in 0..20 {
        let mut net = Net::new(seed, &[1, 2, 3, 4, 5]);
        net.settle();
        for one in [1, 2] {
            for other in [4, 5] {
                net.cut(one, other);
            }
        }
        net.run(5_000);
        let bridged = net.run_until(10_000, |net| {
            net.leader().is_some_and(|leader| net.see(leader).is_settled(SHARD))
        });
        assert!(bridged, "seed {seed}");
        let before = leadership_changes(&net);
        net.run(20_000);
        assert!(leadership_changes(&net) <= before + 1, "seed {seed}: leaders {:?}", net.leaders);
        net.heal();
        net.commit("after");
    }
}

#[test]
fn b4_50_a_vote_survives_a_restart() {
    // B4-50: no second vote in a term, whatever was killed when. Disks are slow, so that kills hit votes.
    for seed in 0..40 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        for node in [1, 2, 3] {
            net.nodes.get_mut(&node).expect("known").sync_ms = 5;
        }
        for _ in 0..12 {
            let victim: NodeId = net.rng.u64(1..=3);
            let wait = net.rng.u64(1..=1_500);
            net.run(wait);
            net.kill(victim);
            let pause = net.rng.u64(1..=30);
            net.run(pause);
            net.start(victim);
        }
        net.settle();
    }
}

#[test]
fn mq_29_leadership_moves_to_a_chosen_node() {
    // MQ-29
    let mut net = Net::new(9, &[1, 2, 3]);
    let leader = net.settle();
    let chosen = (1..=3).find(|node| *node != leader).expect("three nodes");
    assert!(net.at(leader).transfer(SHARD, leader).is_err());
    assert!(net.at(leader).transfer(SHARD, 99).is_err());
    assert!(net.at(chosen).transfer(SHARD, leader).is_err());
    net.at(leader).transfer(SHARD, chosen).expect("a voter");
    net.work(leader);
    assert!(net.propose(leader, "meanwhile").is_err());
    net.run(200);
    assert_eq!(net.leader(), Some(chosen));
    let last = net.nodes[&leader].roles.iter().find(|role| role.reason == Reason::Transferred);
    assert!(last.is_some(), "the old leader knows why: {:?}", net.nodes[&leader].roles);
    assert!(net.nodes[&chosen].roles.iter().any(|role| role.reason == Reason::Transferred));
}

fn prefer_one(config: &mut Config) {
    config.priority = if config.node == 1 { 10 } else { 1 };
}

#[test]
fn priority_decides_elections_but_not_transfers() {
    for seed in 0..20 {
        let mut net = Net::tuned(seed, &[1, 2], prefer_one);
        assert_eq!(net.settle(), 1, "seed {seed}");
        net.at(1).transfer(SHARD, 2).expect("a voter");
        net.work(1);
        net.run(300);
        assert_eq!(net.leader(), Some(2), "seed {seed}");
    }
}

#[test]
fn a_newer_log_beats_priority() {
    // Node 1 is preferred but misses an entry of a newer term with the same index; it must not block.
    let mut net = Net::tuned(1, &[1, 2], prefer_one);
    net.settle();
    net.commit("first");
    net.kill(1);
    net.kill(2);
    let disks = [(1, 5), (2, 6)];
    for (node, term) in disks {
        let disk = &mut net.nodes.get_mut(&node).expect("known").disk;
        let index = disk.state.last_index() + 1;
        disk.state.term = 7;
        disk.state.vote = 0;
        disk.state.entries.push(Entry {
            term,
            index,
            kind: EntryKind::Normal,
            data: Bytes::from_static(b"tail"),
            context: Bytes::new(),
        });
    }
    net.start(1);
    net.start(2);
    assert_eq!(net.settle(), 2);
}

#[test]
fn a_campaign_can_be_asked_for() {
    let mut net = Net::new(2, &[1, 2, 3]);
    net.at(2).campaign(SHARD);
    net.work(2);
    net.run(50);
    assert_eq!(net.leader(), Some(2));
    assert!(net.nodes[&2].roles.iter().any(|role| role.reason == Reason::Requested));
}

#[test]
fn a_long_pause_does_not_burst_into_a_campaign() {
    let mut net = Net::new(2, &[1, 2, 3]);
    let leader = net.settle();
    let follower = (1..=3).find(|node| *node != leader).expect("three nodes");
    let later_ms = net.now_ms + 60_000;
    net.at(follower).tick(later_ms);
    assert_eq!(net.see(follower).role(SHARD), Some(Role::Follower));
    assert_eq!(net.see(follower).leader(SHARD), Some(leader));
    assert!(net.see(follower).next_wake_ms() > later_ms);
}

#[test]
fn a_campaign_that_cannot_happen_does_not_keep_the_node_awake() {
    let mut net = Net::new(3, &[1, 2, 3]);
    let leader = net.settle();
    let follower = (1..=3).find(|node| *node != leader).expect("three nodes");
    let demote = Change { add_learners: vec![follower], ..Change::default() };
    net.at(leader).change(SHARD, demote).expect("a fit change");
    net.work(leader);
    net.run(500);
    let now_ms = net.now_ms;
    net.at(follower).peer_gone(leader, now_ms);
    net.at(follower).campaign(SHARD);
    net.at(follower).tick(now_ms + 200);
    assert!(net.see(follower).next_wake_ms() > now_ms + 200);
    assert_eq!(net.see(follower).role(SHARD), Some(Role::Follower));
}
