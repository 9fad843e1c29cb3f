//! Random schedules: crashes with lost writes, cuts, loss, duplicates, transfers, changes and compactions,
//! with the checks of the small world after every event, and then a calm phase in which all must recover.

mod net;

use bytes::Bytes;
use ikada_consensus::{Change, Config, Message, NodeId};
use net::{Net, SHARD};

fn small(config: &mut Config) {
    config.keep_bytes = 200;
    config.max_entries_bytes_per_message = 200;
    config.max_inflight = 4;
}

fn disturb(net: &mut Net, voters: &[NodeId]) {
    let node = voters[net.rng.usize(..voters.len())];
    let other = voters[net.rng.usize(..voters.len())];
    let is_running = net.nodes[&node].running.is_some();
    match net.rng.u8(..12) {
        0 if is_running => net.kill(node),
        1 if is_running => net.kill_loudly(node),
        2 | 3 if !is_running => net.start(node),
        4 => net.isolate(node),
        5 if node != other => {
            net.cuts.insert((node, other));
        }
        6 | 7 => net.heal(),
        8 if is_running => {
            let _ = net.at(node).transfer(SHARD, other);
            net.work(node);
        }
        9 if is_running => {
            net.compact(node);
        }
        10 if is_running => {
            let toggle = match net.see(node).conf(SHARD).learners.contains(&other) {
                true => Change {
                    add_voters: vec![other],
                    ..Change::default()
                },
                false => Change {
                    add_learners: vec![other],
                    ..Change::default()
                },
            };
            let _ = net.at(node).change(SHARD, toggle);
            net.work(node);
        }
        _ => net.loss = net.rng.u8(..20),
    }
}

fn storm(seed: u64) {
    let voters: &[NodeId] = if seed.is_multiple_of(2) {
        &[1, 2, 3]
    } else {
        &[1, 2, 3, 4, 5]
    };
    let mut net = Net::tuned(seed, voters, small);
    net.duplicates = 5;
    for node in voters {
        let sync_ms = net.rng.u64(1..=8);
        net.nodes.get_mut(node).expect("known").sync_ms = sync_ms;
    }
    for round in 0..80 {
        disturb(&mut net, voters);
        for node in net.running() {
            let _ = net.propose(node, &format!("round {round} at {node}"));
            let _ = net.at(node).read(SHARD, round);
            net.work(node);
        }
        let pause = net.rng.u64(1..400);
        net.run(pause);
    }
    net.heal();
    net.loss = 0;
    net.duplicates = 0;
    for node in voters {
        if net.nodes[node].running.is_none() {
            net.start(*node);
        }
    }
    net.run(3_000);
    let last = net.commit("calm");
    net.agree(last);
    net.run(1_000);
    let leader = net.settle();
    assert!(
        !net.see(leader).conf(SHARD).is_joint(),
        "seed {seed} stays joint"
    );
}

#[test]
fn storms_break_nothing_and_end() {
    for seed in 0..150 {
        storm(seed);
    }
}

#[test]
fn hostile_messages_never_panic() {
    // A peer that speaks the codec but lies about everything.
    let mut net = Net::new(1, &[1, 2, 3]);
    net.allow_faults = true;
    let mut samples: Vec<Bytes> = Vec::new();
    for round in 0..40 {
        for node in net.running() {
            let _ = net.propose(node, &format!("entry {round}"));
        }
        net.run(37);
    }
    let leader = net.settle();
    for _ in 0..30 {
        let _ = net.at(leader).propose(SHARD, Bytes::from_static(b"sample"));
        let _ = net.at(leader).read(SHARD, 1);
        let now_ms = net.now_ms + 100;
        net.now_ms = now_ms;
        for node in net.running() {
            net.at(node).tick(now_ms);
            for (_, _, message) in net.outbox(node).send {
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                samples.push(Bytes::from(bytes));
            }
        }
    }
    assert!(samples.len() > 20);
    let mut rng = fastrand::Rng::with_seed(3);
    let mut accepted = 0;
    for _ in 0..200_000 {
        let mut copy = samples[rng.usize(..samples.len())].to_vec();
        for _ in 0..rng.usize(0..4) {
            let at = rng.usize(1..copy.len().min(24));
            copy[at] = rng.u8(..24);
        }
        let Ok(message) = Message::decode(Bytes::from(copy)) else {
            continue;
        };
        let (from, to) = (message.from(), message.to());
        if (1..=3).contains(&to) {
            accepted += 1;
            if rng.bool() {
                net.at(to).receive(from, message, 0);
            } else {
                net.at(to).snapshot_offered(SHARD, from, message);
            }
            if rng.u8(..50) == 0 {
                let out = net.outbox(to);
                if let Some(io) = out.io {
                    net.at(to).persisted(io.seq);
                }
                for (_, start, conf) in out.install {
                    net.at(to).snapshot_installed(SHARD, start, conf);
                }
                for (_, entries) in out.apply {
                    net.at(to)
                        .applied(SHARD, entries.last().expect("not empty").index);
                }
            }
        }
    }
    assert!(accepted > 1_000, "{accepted} messages reached a node");
}
