//! Each planted defect breaks a promise that a test can see: the hooks are alive.
#![cfg(feature = "planted")]

mod world;

use ikada_store::planted::{Bug, set};
use ikada_store::{Disk, Log, Record, Recovery, SimDisk, Snapshots};
use world::{entry, identity, open, small};

/// A log with a few synced entries and a vote, written under a defect.
fn written(bug: Bug) -> SimDisk {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    set(Some(bug));
    for index in 1..=5 {
        let hard = Record::Hard { shard: 0, term: index, vote: 2, commit: index - 1 };
        log.append(&[hard, entry(0, index, index, "sixteen bytes ok")]).unwrap();
        log.sync().unwrap();
    }
    if bug == Bug::PurgeOneTooMany {
        log.purge(0, 2, 2).unwrap();
        log.sync().unwrap();
    }
    set(None);
    drop(log);
    disk
}

fn reopened(disk: &SimDisk, bug: Option<Bug>) -> Recovery {
    set(bug);
    let opened = Log::open(disk.clone(), &identity(), small());
    set(None);
    opened.unwrap().1
}

fn flip(disk: &SimDisk, text: &[u8], nth: usize, back: usize) {
    let name = format!("wal/{}", disk.list("wal").unwrap().last().unwrap());
    let bytes = disk.read(&name).unwrap();
    let mut places = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    let at = places.nth(nth).unwrap().0 - back;
    disk.flip_bit(&name, at as u64, 1).unwrap();
}

#[test]
fn a_skipped_sync_loses_acknowledged_work() {
    let lost = (0..20).any(|seed| {
        let disk = written(Bug::SyncSkipped);
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        set(None);
        Log::open(disk, &identity(), small())
            .map_or(true, |(_, found)| found.shards.get(&0).is_none_or(|s| s.last_index() < 5))
    });
    assert!(lost);
}

#[test]
fn a_cut_in_the_middle_is_silent() {
    let disk = written(Bug::MiddleCut);
    flip(&disk, b"sixteen bytes ok", 2, 0);
    let honest = reopened(&disk.fork(), None);
    assert!(honest.shards[&0].damaged);
    let cut = reopened(&disk, Some(Bug::MiddleCut));
    assert_eq!((cut.shards[&0].last_index() < 5, cut.quarantined.len()), (true, 0));
}

#[test]
fn a_kept_torn_tail_shows_bytes_nobody_wrote() {
    let disk = written(Bug::TornTailKept);
    let (mut log, _) = open(&disk);
    log.append(&[entry(0, 6, 6, "never synced")]).unwrap();
    drop(log);
    flip(&disk, b"never synced", 0, 0);
    assert_eq!(reopened(&disk.fork(), None).shards[&0].last_index(), 5);
    assert_eq!(reopened(&disk, Some(Bug::TornTailKept)).shards[&0].last_index(), 6);
}

#[test]
fn an_unwritten_vote_is_forgotten() {
    for (bug, term) in [(Bug::PurgeOneTooMany, 5), (Bug::VotesNotWritten, 4)] {
        let disk = written(bug);
        // The last vote's record lies right before the last entry.
        flip(&disk, b"sixteen bytes ok", 4, 64 + 40);
        assert_eq!(reopened(&disk, None).shards[&0].term, term);
    }
}

#[test]
fn a_purge_too_far_leaves_a_hole_behind_the_snapshot() {
    let disk = written(Bug::PurgeOneTooMany);
    assert_eq!(reopened(&disk, None).shards[&0].start_index, 3);
}

#[test]
fn an_unsynced_snapshot_is_damaged_by_a_power_cut() {
    let broken = (0..30).any(|seed| {
        let disk = SimDisk::new();
        let snapshots = Snapshots::open(disk.clone(), &identity()).unwrap();
        set(Some(Bug::SnapshotNotSynced));
        let mut writer = snapshots.begin(0, 1, 1).unwrap();
        writer.chunk(&[9; 4000]).unwrap();
        writer.finish(b"", 0).unwrap();
        set(None);
        disk.crash(&mut fastrand::Rng::with_seed(seed));
        Snapshots::open(disk, &identity()).unwrap().load(0).unwrap().is_none()
    });
    assert!(broken);
}
