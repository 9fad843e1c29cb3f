//! Random schedules and hostile peers: nothing breaks, and everything recovers.

mod net;

use bytes::Bytes;
use ikada_consensus::Message;
use net::storm::storm;
use net::{Net, SHARD};

#[test]
fn storms_break_nothing_and_end() {
    for seed in 0..150 {
        storm(seed);
    }
}

#[test]
#[ignore = "takes minutes; for changes of this crate"]
fn many_storms_break_nothing_and_end() {
    for seed in 150..10_000 {
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
                    net.at(to).applied(SHARD, entries.last().expect("not empty").index);
                }
            }
        }
    }
    assert!(accepted > 1_000, "{accepted} messages reached a node");
}
