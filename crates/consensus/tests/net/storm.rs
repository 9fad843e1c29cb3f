//! A random schedule: crashes with lost writes, damaged disks, cuts, loss, duplicates, transfers, changes and
//! compactions; then a calm phase in which all must recover.

use ikada_consensus::{Change, Config, NodeId};

use super::{Net, SHARD};

fn small(config: &mut Config) {
    config.keep_bytes = 200;
    config.max_entries_bytes_per_message = 200;
    config.max_inflight = 4;
}

fn disturb(net: &mut Net, voters: &[NodeId]) {
    let node = voters[net.rng.usize(..voters.len())];
    let other = voters[net.rng.usize(..voters.len())];
    let is_running = net.nodes[&node].running.is_some();
    match net.rng.u8(..13) {
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
            toggle(net, node, other);
        }
        11 if is_running && has_damage(net) => {
            let entries = net.rng.usize(1..6);
            net.damage(node, entries);
        }
        _ => net.loss = net.rng.u8(..20),
    }
}

/// Only some storms damage disks.
fn has_damage(net: &Net) -> bool {
    net.seed.is_multiple_of(3)
}

/// Takes a vote away, or gives it back.
fn toggle(net: &mut Net, node: NodeId, other: NodeId) {
    let conf = net.see(node).conf(SHARD);
    let change = match conf.learners.contains(&other) {
        true => Change { add_voters: vec![other], ..Change::default() },
        false => Change { add_learners: vec![other], ..Change::default() },
    };
    // Two voters of which one is damaged could never recover by themselves, and need not.
    let is_shrinking = conf.voters.contains(&other);
    if !(has_damage(net) && is_shrinking && conf.voters.len() <= 3) {
        let _ = net.at(node).change(SHARD, change);
        net.work(node);
    }
}

pub fn storm(seed: u64) {
    let voters: &[NodeId] = if seed.is_multiple_of(2) { &[1, 2, 3] } else { &[1, 2, 3, 4, 5] };
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
            net.read(node);
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
    assert!(!net.see(leader).conf(SHARD).is_joint(), "seed {seed} stays joint");
}
