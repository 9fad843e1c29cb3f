//! Entries of a newer version in the log: a node that cannot apply them stops, and says what to do.

use bytes::Bytes;
use ikada_replica::consensus::{Conf, Entry, EntryKind, Recovered};
use ikada_replica::output::{Halt, Input, Now};
use ikada_replica::state::{BatchBuilder, Shard};
use ikada_replica::{Replica, ReplicaConfig};

use crate::harness::enqueue;

const NOW: Now = Now { mono_ms: 1_000, wall_ms: 1_700_000_000_000 };

/// How a lone node ends that finds this entry committed in its log.
fn ending(data: Vec<u8>) -> Option<Halt> {
    let mut recovered = Recovered::bootstrap(Conf::of_voters([1]));
    let (index, term) = (recovered.commit + 1, recovered.term);
    let (kind, data) = (EntryKind::Normal, Bytes::from(data));
    recovered.entries.push(Entry { term, index, kind, data, context: Bytes::new() });
    recovered.commit = index;
    recovered.floor = index;
    let parts = vec![(recovered, Shard::genesis(0, 1, &[]))];
    let config = ReplicaConfig::new(1, 7, 42, 1_001);
    let mut replica = Replica::new(config, parts, NOW).expect("opens");
    replica.step(Input::Tick, NOW);
    for _ in 0..10 {
        let outputs = replica.poll(NOW);
        if outputs.halt.is_some() {
            return outputs.halt;
        }
        if let Some(io) = outputs.io {
            replica.step(Input::Persisted(io.seq), NOW);
        }
    }
    None
}

fn entry() -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.push(&enqueue("t"));
    builder.finish(NOW.wall_ms)
}

// F-28
#[test]
fn f_28_an_entry_of_a_newer_version_stops_the_node() {
    assert_eq!(ending(entry()), None);
    let mut newer = entry();
    newer[0] += 1;
    let halt = ending(newer).expect("it stops");
    assert_eq!(halt, Halt::Newer { shard: 0, index: 2 });
    assert!(halt.to_string().contains("start the newer version"), "{halt}");
}

// F-23: bytes that no version wrote are refused by all alike, and nobody stops.
#[test]
fn f_23_a_broken_entry_stops_nobody() {
    let mut broken = entry();
    broken.pop();
    assert_eq!(ending(broken), None);
}
