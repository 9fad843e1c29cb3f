//! Replication: entries reach everybody, survive deaths, and nothing is promised before it is durable.

mod net;

use bytes::Bytes;
use ikada_consensus::{
    Change, Conf, Config, Consensus, Entry, EntryKind, IoRecord, MessageKind, OpenError, Outbox,
    PeerState, Recovered, Role, SnapshotNeed, Start,
};
use net::{Net, SHARD};

#[test]
fn entries_reach_all_nodes_in_order() {
    let mut net = Net::new(1, &[1, 2, 3]);
    let mut last = 0;
    for number in 0..50 {
        last = net.commit(&format!("entry {number}"));
    }
    net.agree(last);
    let payloads = net.history.values().filter(|entry| !entry.data.is_empty());
    let texts: Vec<String> =
        payloads.map(|entry| String::from_utf8_lossy(&entry.data).into_owned()).collect();
    let wanted: Vec<String> = (0..50).map(|number| format!("entry {number}")).collect();
    assert_eq!(texts, wanted);
}

/// What a leader sends while entries are committed one by one, so many at a time: appends with entries, and empty ones.
fn appends(net: &mut Net, leader: u64, count: u64, pause_ms: u64) -> (usize, usize) {
    net.appends = (0, 0);
    for number in 0..count {
        net.propose(leader, &format!("entry {number}")).expect("it leads");
        net.run(pause_ms);
    }
    net.appends
}

#[test]
fn a_commit_is_told_with_the_next_append_and_otherwise_after_a_moment() {
    let mut net = Net::new(1, &[1, 2, 3]);
    let leader = net.settle();
    net.run(100);
    let (full, empty) = appends(&mut net, leader, 200, 1);
    assert!(full >= 400, "each entry goes to both followers: {full}");
    assert!(empty <= 8, "appends that follow carry what is committed: {empty} were empty");
    net.run(50);
    let (_, empty) = appends(&mut net, leader, 10, 100);
    assert!((10..=20).contains(&empty), "without another entry both are told, once: {empty}");
    let (_, index) = net.propose(leader, "last").expect("it leads");
    let all_know = |net: &Net| (1..=3).all(|node| net.see(node).commit(SHARD) >= index);
    assert!(net.run_until(30, all_know), "nobody waits for a heartbeat");
}

#[test]
fn a_proposal_is_refused_with_a_hint_elsewhere() {
    let mut net = Net::new(1, &[1, 2, 3]);
    assert_eq!(net.propose(1, "early").expect_err("nobody leads").leader, None);
    let leader = net.settle();
    let follower = (1..=3).find(|node| *node != leader).expect("three nodes");
    let refused = net.propose(follower, "here").expect_err("followers refuse");
    assert_eq!(refused.leader, Some(leader));
    let unknown = net.at(leader).propose(99, Bytes::new());
    assert_eq!(unknown.expect_err("unknown shard").leader, None);
}

#[test]
fn a_stale_suffix_is_replaced_after_a_partition() {
    let mut net = Net::new(2, &[1, 2, 3]);
    let old = net.settle();
    net.commit("before");
    net.isolate(old);
    for number in 0..5 {
        net.propose(old, &format!("lost {number}")).expect("it still believes");
    }
    net.run(4_000);
    let kept = net.commit("kept");
    net.heal();
    net.agree(kept);
    let is_lost = |entry: &Entry| entry.data.starts_with(b"lost");
    assert!(!net.history.values().any(is_lost));
    assert!(!net.nodes[&old].disk.state.entries.iter().any(is_lost));
}

#[test]
fn a_cluster_restarts_from_its_disks() {
    let mut net = Net::new(3, &[1, 2, 3]);
    let index = net.commit("kept");
    net.agree(index);
    for node in [1, 2, 3] {
        net.kill(node);
        net.start(node);
        // A commit index that was never written back is no obstacle.
    }
    let next = net.commit("more");
    net.agree(next);
    assert_eq!(net.history[&index].data, Bytes::from_static(b"kept"));
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = |seed| {
        let mut net = Net::new(seed, &[1, 2, 3]);
        net.loss = 5;
        net.duplicates = 5;
        net.commit("one");
        let leader = net.settle();
        net.kill_loudly(leader);
        net.commit("two");
        net.start(leader);
        net.run(3_000);
        net.commit("three");
        net.trace
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

/// Drives one voter of three by hand: it never sees a peer, only our messages.
fn lone_voter() -> (Consensus, Outbox) {
    let mut consensus = Consensus::new(Config::new(1, 5));
    let recovered = Recovered::bootstrap(Conf::of_voters([1, 2, 3]));
    consensus.open(SHARD, recovered, 0).expect("sound");
    let mut out = Outbox::default();
    consensus.poll(&mut out);
    (consensus, out)
}

#[test]
fn a_vote_leaves_only_after_the_sync() {
    // R8, B4-50: ask a real candidate for its request, then watch the voter.
    let (mut voter, mut out) = lone_voter();
    let mut net = Net::new(4, &[1, 2, 3]);
    net.kill(1);
    net.kill(3);
    net.run_until(5_000, |net| net.see(2).role(SHARD) == Some(Role::PreCandidate));
    let requests = |net: &mut Net| {
        net.at(2).campaign(SHARD);
        net.outbox(2).send
    };
    let asked = requests(&mut net);
    let pre_vote = asked.into_iter().find(|(to, _, _)| *to == 1).expect("asked").2;
    assert_eq!(pre_vote.kind(), MessageKind::PreVote);
    voter.receive(2, pre_vote, 10);
    voter.poll(&mut out);
    // A pre-vote changes nothing durable: the answer leaves at once.
    assert_eq!(out.send.len(), 1);
    assert!(out.io.is_none());
    let grant = out.send[0].2.clone();
    assert!(!grant.is_refusal());
    net.at(2).receive(1, grant, 0);
    let mut turn = net.outbox(2);
    assert!(turn.send.is_empty(), "the candidate's own vote must be durable first");
    let io = turn.io.take().expect("a new term");
    assert!(io.must_sync);
    net.at(2).persisted(io.seq);
    let vote = net.outbox(2).send.into_iter().find(|(to, _, _)| *to == 1).expect("asked").2;
    assert_eq!(vote.kind(), MessageKind::Vote);
    voter.receive(2, vote, 20);
    voter.poll(&mut out);
    assert!(out.send.is_empty(), "the vote waits for the disk");
    let io = out.io.take().expect("a vote to write");
    assert!(io.must_sync);
    assert!(matches!(io.records[..], [IoRecord::Hard { vote: 2, .. }]));
    voter.poll(&mut out);
    assert!(out.is_empty());
    voter.persisted(io.seq);
    voter.poll(&mut out);
    assert_eq!(out.send.len(), 1);
    assert_eq!(out.send[0].2.kind(), MessageKind::VoteAnswer);
    assert!(!out.send[0].2.is_refusal());
}

#[test]
fn appends_are_answered_after_the_sync_and_hard_state_comes_first() {
    let mut net = Net::new(6, &[1, 2, 3]);
    let index = net.commit("before");
    net.agree(index);
    net.run(300);
    let leader = net.settle();
    let follower = (1..=3).find(|node| *node != leader).expect("three nodes");
    net.at(leader).propose(SHARD, Bytes::from_static(b"x")).expect("leads");
    let mut turn = net.outbox(leader);
    let append = turn.send.iter().find(|(to, _, _)| *to == follower).expect("sent before the sync");
    assert_eq!(append.2.kind(), MessageKind::Append);
    assert!(turn.io.take().expect("own write").must_sync);
    let message = append.2.clone();
    let now_ms = net.now_ms;
    net.at(follower).receive(leader, message, now_ms);
    let answer = net.outbox(follower);
    assert!(answer.send.is_empty() && answer.apply.is_empty());
    let io = answer.io.expect("an entry to write");
    let first_append =
        io.records.iter().position(|record| matches!(record, IoRecord::Append { .. }));
    let last_hard = io.records.iter().rposition(|record| matches!(record, IoRecord::Hard { .. }));
    assert!(last_hard.is_none_or(|hard| hard < first_append.expect("an entry")));
    net.at(follower).persisted(io.seq);
    let answer = net.outbox(follower);
    assert_eq!(answer.send.len(), 1);
    assert_eq!(answer.send[0].2.kind(), MessageKind::AppendAnswer);
}

#[test]
fn an_idle_cluster_writes_nothing() {
    // TQ-13
    let mut net = Net::new(7, &[1, 2, 3]);
    let index = net.commit("last");
    net.agree(index);
    net.run(500);
    let from = net.trace.len();
    net.run(10_000);
    assert!(!net.trace[from..].iter().any(|line| line.contains("io: Some")));
}

#[test]
fn many_shards_share_one_batch() {
    let mut consensus = Consensus::new(Config::new(1, 5));
    for shard in 0..8 {
        consensus.open(shard, Recovered::bootstrap(Conf::of_voters([1])), 0).expect("sound");
    }
    let mut out = Outbox::default();
    consensus.tick(0);
    consensus.poll(&mut out);
    let io = out.io.take().expect("eight new leaders");
    let appends = io.records.iter().filter(|record| matches!(record, IoRecord::Append { .. }));
    assert_eq!(appends.count(), 8);
    assert!(out.apply.is_empty());
    consensus.persisted(io.seq);
    consensus.poll(&mut out);
    assert_eq!(out.apply.len(), 8);
}

#[test]
fn a_peer_far_behind_gets_a_snapshot() {
    fn keep_nothing(config: &mut Config) {
        config.keep_bytes = 0;
    }
    let mut net = Net::tuned(8, &[1, 2, 3], keep_nothing);
    let leader = net.settle();
    let late = (1..=3).find(|node| *node != leader).expect("three nodes");
    net.kill(late);
    for number in 0..20 {
        net.commit(&format!("entry {number}"));
    }
    let start = net.compact(leader);
    assert_eq!(net.see(leader).first_index(SHARD), start.index + 1);
    net.start(late);
    let last = net.commit("after");
    net.agree(last);
    assert_eq!(net.nodes[&late].disk.state.start, start);
    let progress = net.see(leader).progress(SHARD);
    let fed = progress.iter().find(|peer| peer.node == late).expect("a member");
    assert_eq!(fed.state, PeerState::Replicate);
    // The follower restarts from the snapshot that it was given.
    net.kill(late);
    net.start(late);
    let last = net.commit("again");
    net.agree(last);
}

#[test]
fn a_leader_keeps_at_hand_what_a_peer_lacks() {
    let mut net = Net::tuned(8, &[1, 2, 3], |config| config.keep_bytes = 0);
    let leader = net.settle();
    let late = (1..=3).find(|node| *node != leader).expect("three nodes");
    let before = net.commit("before");
    net.agree(before);
    net.kill(late);
    let mut last = before;
    for number in 0..20 {
        last = net.commit(&format!("entry {number}"));
    }
    assert_eq!(net.see(leader).entries(SHARD, before + 1, last + 1).len() as u64, last - before);
    net.start(late);
    net.agree(last);
    assert!(net.nodes[&late].disk.state.start.index < before, "it got entries, not a snapshot");
    // Once nobody lacks them they go.
    last = net.commit("after");
    net.agree(last);
    net.commit("and one more, since a leader looks when it applies");
    assert_eq!(net.see(leader).entries(SHARD, before + 1, before + 2), []);
}

#[test]
fn a_snapshot_that_was_begun_before_entries_went_counts() {
    let mut net = Net::tuned(8, &[1, 2, 3], |config| config.keep_bytes = 0);
    let leader = net.settle();
    let early = net.commit("early");
    let term = net.see(leader).term(SHARD);
    let conf = net.see(leader).conf_at(SHARD, early).expect("applied");
    for number in 0..5 {
        let last = net.commit(&format!("entry {number}"));
        net.agree(last);
    }
    assert_eq!(
        net.see(leader).term_at(SHARD, early),
        None,
        "it went before the snapshot was durable"
    );
    net.at(leader).compact(SHARD, Start { index: early, term }, conf);
    assert_eq!(net.see(leader).first_index(SHARD), early + 1);
}

/// A joining node driven by hand, and the snapshot that a leader offers it.
fn offered_snapshot() -> (Consensus, SnapshotNeed) {
    let mut net = Net::new(9, &[1, 2, 3]);
    net.commit("before");
    let leader = net.settle();
    let add = Change { add_learners: vec![4], ..Change::default() };
    net.at(leader).change(SHARD, add).expect("a fit change");
    net.work(leader);
    net.run(500);
    net.compact(leader);
    let mut joiner = Consensus::new(Config::new(4, 1));
    joiner.open(SHARD, Recovered::joining(), 0).expect("sound");
    let mut out = Outbox::default();
    for _ in 0..20 {
        net.now_ms += 100;
        let now_ms = net.now_ms;
        net.at(leader).tick(now_ms);
        let turn = net.outbox(leader);
        if let Some(need) = turn.snapshots.into_iter().next() {
            return (joiner, need);
        }
        for (_, _, message) in turn.send.into_iter().filter(|(to, _, _)| *to == 4) {
            joiner.receive(leader, message, now_ms);
        }
        joiner.poll(&mut out);
        if let Some(io) = out.io.take() {
            joiner.persisted(io.seq);
            let answered = std::mem::take(&mut out.send);
            joiner.poll(&mut out);
            out.send.extend(answered);
        }
        for (_, _, message) in out.send.drain(..) {
            net.at(leader).receive(4, message, now_ms);
        }
    }
    panic!("the leader offers no snapshot");
}

#[test]
fn a_snapshot_is_acknowledged_only_when_installed_and_durable() {
    for is_installed_first in [true, false] {
        let (mut joiner, need) = offered_snapshot();
        let mut out = Outbox::default();
        let from = need.message.from();
        // The ordinary way never takes a snapshot: its data would be missing.
        joiner.receive(from, need.message.clone(), 0);
        joiner.poll(&mut out);
        assert!(out.install.is_empty());
        assert!(joiner.snapshot_offered(SHARD, from, need.message.clone()));
        joiner.poll(&mut out);
        assert_eq!(out.install, vec![(SHARD, need.start, need.conf.clone())]);
        let io = out.io.take().expect("a restart to write");
        let restart = IoRecord::Restart { shard: SHARD, start: need.start };
        assert_eq!(io.records[0], restart);
        assert!(io.must_sync && out.send.is_empty());
        assert!(!joiner.snapshot_offered(SHARD, from, need.message.clone()));
        let install = |joiner: &mut Consensus| {
            joiner.snapshot_installed(SHARD, need.start, need.conf.clone());
            joiner.applied(SHARD, need.start.index);
        };
        if is_installed_first {
            install(&mut joiner);
        } else {
            joiner.persisted(io.seq);
        }
        joiner.poll(&mut out);
        assert!(out.send.is_empty(), "one half is not enough");
        if is_installed_first {
            joiner.persisted(io.seq);
        } else {
            install(&mut joiner);
        }
        joiner.poll(&mut out);
        assert_eq!(out.send.len(), 1);
        assert_eq!(out.send[0].2.index(), need.start.index);
        assert_eq!(joiner.conf(SHARD), need.conf);
    }
}

#[test]
fn bad_disks_are_refused_with_the_reason() {
    let entry = |index, term| Entry {
        term,
        index,
        kind: EntryKind::Normal,
        data: Bytes::new(),
        context: Bytes::new(),
    };
    let good = Recovered { term: 3, ..Recovered::bootstrap(Conf::of_voters([1])) };
    let open = |recovered| Consensus::new(Config::new(1, 1)).open(SHARD, recovered, 0);
    let gap = open(Recovered { entries: vec![entry(3, 1)], ..good.clone() });
    assert_eq!(gap, Err(OpenError::Gap { shard: SHARD, expected: 2, found: 3 }));
    let order = open(Recovered { entries: vec![entry(2, 3), entry(3, 2)], ..good.clone() });
    assert_eq!(order, Err(OpenError::TermOrder { shard: SHARD, index: 3, term: 2 }));
    let future = open(Recovered { entries: vec![entry(2, 4)], ..good.clone() });
    assert_eq!(future, Err(OpenError::TermOrder { shard: SHARD, index: 2, term: 4 }));
    let zero = open(Recovered { start: Start::default(), ..good.clone() });
    assert_eq!(zero, Err(OpenError::StartAtZero(SHARD)));
    let conf = Conf { voters: vec![1, 1], ..Conf::default() };
    assert!(matches!(open(Recovered { conf, ..good.clone() }), Err(OpenError::Conf(..))));
    // A commit index beyond the log, or below the snapshot, is clamped.
    assert_eq!(open(Recovered { commit: 99, ..good.clone() }), Ok(()));
    assert_eq!(open(Recovered { commit: 0, ..good }), Ok(()));
}
