//! Snapshots on their way to a follower that is far behind.

use bytes::Bytes;
use ikada_replica::call::Request;
use ikada_replica::output::{Input, SnapshotDone, SnapshotWork};

use crate::harness::{Cluster, enqueue};

/// A follower whose log ends before the leader's begins.
fn lagging() -> (Cluster, u64) {
    let mut cluster = Cluster::with(3, 1, |config| {
        config.snapshot_entries = 5;
        config.consensus.keep_bytes = 0;
    });
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let behind = (1..=3).find(|node| *node != leader).expect("another");
    cluster.kill(behind);
    for number in 0..30 {
        cluster.ask(leader, Request::Write(vec![enqueue(&format!("t{number}"))]));
        cluster.pass(50);
    }
    cluster.revive(behind);
    (cluster, behind)
}

/// Does the snapshot work of all nodes except the writing of chunks, until there is something to write.
fn work_until_write(cluster: &mut Cluster) -> (u64, SnapshotDone) {
    for _ in 0..300 {
        while let Some((node, work)) = cluster.works.pop_front() {
            let done = match work {
                SnapshotWork::Describe { shard, to } => {
                    let start = cluster.nodes[&node].consensus().first_index(shard) - 1;
                    let term = cluster.nodes[&node].consensus().term_at(shard, start);
                    let start =
                        ikada_replica::consensus::Start { index: start, term: term.expect("term") };
                    let found = Some((start, Bytes::from_static(b"manifest")));
                    SnapshotDone::Manifest { shard, to, found }
                }
                SnapshotWork::Receive { shard, start, .. } => {
                    SnapshotDone::Receiving { shard, start, chunks: Some(1) }
                }
                SnapshotWork::Read { shard, start, chunk, to } => {
                    let bytes = Some(Bytes::from_static(b"chunk"));
                    SnapshotDone::Chunk { shard, start, chunk, to, bytes }
                }
                SnapshotWork::Write { shard, start, chunk, .. } => {
                    return (node, SnapshotDone::Wrote { shard, start, chunk, ok: true });
                }
                SnapshotWork::Load { .. } => panic!("nothing was written yet"),
                SnapshotWork::Save { .. } => continue,
            };
            cluster.step(node, Input::Snapshot(done));
        }
        cluster.pass(10);
    }
    panic!("no chunk came");
}

fn loads(cluster: &Cluster, node: u64) -> bool {
    let load = |work: &SnapshotWork| matches!(work, SnapshotWork::Load { .. });
    cluster.works.iter().any(|(at, work)| *at == node && load(work))
}

/// Asking again, and a repeated offer, once let a transfer count as complete while its last chunk was being written.
#[test]
fn a_snapshot_is_complete_only_when_its_last_chunk_is_written() {
    let (mut cluster, behind) = lagging();
    let (node, wrote) = work_until_write(&mut cluster);
    assert_eq!(node, behind);
    // Longer than it takes to ask for a chunk again.
    cluster.pass(2_000);
    assert!(!loads(&cluster, behind), "the last chunk is not written yet");
    cluster.step(behind, Input::Snapshot(wrote));
    cluster.pass(200);
    assert!(loads(&cluster, behind), "all is written");
}

/// A member that restarted just when it was offered a snapshot stayed behind for a quarter of a minute.
#[test]
fn an_offer_that_was_lost_is_made_again() {
    let (mut cluster, behind) = lagging();
    cluster.pass(200);
    let describes = |cluster: &mut Cluster| {
        let works = std::mem::take(&mut cluster.works);
        let about = |work: &SnapshotWork| matches!(work, SnapshotWork::Describe { to, .. } if *to == behind);
        works.iter().filter(|(_, work)| about(work)).count()
    };
    assert_eq!(describes(&mut cluster), 1, "it is offered, and the offer is lost");
    cluster.pass(500);
    assert_eq!(describes(&mut cluster), 0, "not at once");
    cluster.pass(1_000);
    assert_eq!(describes(&mut cluster), 1, "it is offered again");
    cluster.pass(1_500);
    assert!(describes(&mut cluster) > 0, "and again");
}
