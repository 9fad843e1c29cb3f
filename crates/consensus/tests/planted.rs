//! Every planted defect is found by the checks of the small world: with it on, some run fails.
//!
//! Most are found by storms. Two need a rare order of events, so they have a scenario of their own, which must
//! also pass without the defect.

#![cfg(feature = "planted")]

mod net;

use std::panic;

use bytes::Bytes;
use ikada_consensus::planted::{self, ALL, Bug};
use ikada_consensus::{Config, Entry, EntryKind};
use net::storm::storm;
use net::{Net, SHARD};

/// Runs `scenario` with a defect, one seed after the other, until it fails; gives the seed and the failure.
fn find(bug: Option<Bug>, seeds: u64, scenario: fn(u64)) -> Option<(u64, String)> {
    for seed in 0..seeds {
        planted::set(bug);
        let outcome = panic::catch_unwind(|| scenario(seed));
        planted::set(None);
        if let Err(failure) = outcome {
            let text = failure.downcast_ref::<String>().cloned();
            return Some((seed, text.unwrap_or_default()));
        }
    }
    None
}

/// Raft's figure 8: an entry of an old term reaches a majority, its leader dies, and a longer term replaces it.
fn old_term_entry(seed: u64) {
    fn one_entry_per_message(config: &mut Config) {
        config.max_entries_bytes_per_message = 1;
    }
    let mut net = Net::tuned(seed, &[1, 2, 3, 4, 5], one_entry_per_message);
    for node in 1..=5 {
        net.kill(node);
        let state = &mut net.nodes.get_mut(&node).expect("known").disk.state;
        state.term = 3;
        let entry = |term| Entry {
            term,
            index: 2,
            kind: EntryKind::Normal,
            data: Bytes::from(format!("of term {term}")),
            context: Bytes::new(),
        };
        match node {
            1 | 2 => state.entries = vec![entry(2)],
            5 => state.entries = vec![entry(3)],
            _ => {}
        }
        net.start(node);
    }
    net.at(1).campaign(SHARD);
    net.work(1);
    net.run_until(200, |net| net.leader() == Some(1));
    net.cut(1, 4);
    net.cut(1, 5);
    net.run_until(500, |net| net.see(3).last_index(SHARD) == 2 && net.see(1).commit(SHARD) >= 2);
    net.kill(1);
    net.kill(2);
    net.drop_sent(1);
    net.heal();
    net.settle();
    net.commit("after");
    net.start(1);
    net.start(2);
    let last = net.commit("all");
    net.agree(last);
}

/// A leader that is cut off while the others elect a new one at once is asked for a read.
fn read_at_a_stale_leader(seed: u64) {
    let mut net = Net::new(seed, &[1, 2, 3]);
    let old = net.settle();
    net.isolate(old);
    for node in (1..=3).filter(|node| *node != old) {
        let now_ms = net.now_ms;
        net.at(node).peer_gone(old, now_ms);
        net.work(node);
    }
    net.run_until(3_000, |net| net.leader().is_some_and(|leader| leader != old));
    net.commit("newer");
    net.read(old);
    net.run(3_000);
}

fn scenario(bug: Bug) -> fn(u64) {
    match bug {
        Bug::OldTermCommit => old_term_entry,
        Bug::LeaseRead => read_at_a_stale_leader,
        _ => storm,
    }
}

#[test]
fn every_planted_defect_is_found() {
    let mut missed = Vec::new();
    for bug in ALL {
        match find(Some(bug), 1_000, scenario(bug)) {
            Some((seed, failure)) => println!("{bug:?}: seed {seed}: {failure}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_scenarios_pass_without_a_defect() {
    for scenario in [old_term_entry, read_at_a_stale_leader] {
        assert_eq!(find(None, 60, scenario), None);
    }
}
