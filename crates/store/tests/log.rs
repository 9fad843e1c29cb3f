//! The log without damage: what goes in comes out, segments come and go.

mod world;

use ikada_store::{Disk, Fault, Log, LogOptions, OpenError, Record, SimDisk};
use world::{Model, entry, identity, open, random_batch, small};

#[test]
fn an_empty_log_opens_again_and_again() {
    let disk = SimDisk::new();
    for _ in 0..3 {
        let (_, recovery) = open(&disk);
        assert_eq!(recovery, ikada_store::Recovery::default());
        disk.crash(&mut fastrand::Rng::with_seed(4));
    }
}

#[test]
fn everything_comes_back_after_a_clean_restart() {
    // B4-50: term and vote survive
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let batch = [
        Record::Hard { shard: 1, term: 2, vote: 3, commit: 1 },
        entry(1, 2, 1, "one"),
        entry(1, 2, 2, "two"),
        entry(9, 5, 1, ""),
    ];
    log.append(&batch).unwrap();
    log.append(&[entry(1, 3, 2, "two again"), entry(1, 3, 3, "three")]).unwrap();
    log.sync().unwrap();
    let mut model = Model::default();
    model.apply(&batch);
    model.apply(&[entry(1, 3, 2, "two again"), entry(1, 3, 3, "three")]);
    disk.crash(&mut fastrand::Rng::with_seed(1));
    let (_, recovery) = open(&disk);
    assert_eq!(recovery.shards, model.shards);
    assert_eq!((recovery.torn_bytes, recovery.quarantined.len()), (0, 0));
}

#[test]
fn a_restart_does_not_cost_a_segment() {
    let disk = SimDisk::new();
    let options = || LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
    for index in 1..=20 {
        let (mut log, recovery) = Log::open(disk.clone(), &identity(), options()).unwrap();
        let found = recovery.shards.get(&0).map_or(0, |shard| shard.entries.len());
        assert_eq!(found as u64, index - 1);
        log.append(&[entry(0, 1, index, "x")]).unwrap();
        log.sync().unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(index));
    }
    let names = disk.list("wal").unwrap();
    let sizes = names.iter().map(|name| disk.read(&format!("wal/{name}")).unwrap().len());
    assert!(sizes.sum::<usize>() < 2 << 20, "unused room is given back");
}

#[test]
fn one_sync_serves_all_shards() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let before = disk.counters().syncs;
    for shard in 0..16 {
        log.append(&[entry(shard, 1, 1, "x")]).unwrap();
    }
    log.sync().unwrap();
    log.sync().unwrap();
    assert_eq!(disk.counters().syncs - before, 1);
    log.append(&[Record::Hard { shard: 0, term: 1, vote: 2, commit: 0 }]).unwrap();
    log.sync().unwrap();
    assert_eq!(disk.counters().syncs - before, 3, "the votes file is synced as well");
}

#[test]
fn an_installed_snapshot_restarts_the_log() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    log.append(&[entry(0, 1, 1, "a"), entry(0, 1, 2, "b"), entry(0, 1, 3, "c")]).unwrap();
    log.append(&[Record::Start { shard: 0, index: 2, term: 1 }]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (mut log, recovery) = open(&disk);
    assert_eq!(recovery.shards[&0].entries.len(), 1, "a matching entry keeps its followers");
    log.append(&[Record::Start { shard: 0, index: 3, term: 9 }, entry(0, 9, 4, "d")]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (_, recovery) = open(&disk);
    let shard = &recovery.shards[&0];
    assert_eq!((shard.start_index, shard.start_term, shard.entries[0].term), (3, 9, 9));
}

#[test]
fn a_cold_shard_cannot_pin_old_segments() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    log.append(&[entry(7, 1, 1, "cold one"), entry(7, 1, 2, "cold two")]).unwrap();
    let text = "x".repeat(700);
    for index in 1..400 {
        log.append(&[entry(0, 1, index, &text)]).unwrap();
        log.sync().unwrap();
        if index % 10 == 0 {
            log.purge(0, index - 2, 1).unwrap();
        }
        assert!(log.stats().bytes < 6 * small().segment_bytes, "{:?}", log.stats());
    }
    assert!(log.stats().rewritten_records > 0 && log.stats().deleted_segments > 20);
    let live = log.stats();
    drop(log);
    let (log, recovery) = open(&disk);
    assert!(recovery.findings.is_empty(), "{:?}", recovery.findings);
    assert_eq!(recovery.shards[&7].entries[1].data.as_ref(), b"cold two");
    assert_eq!(recovery.shards[&0].start_index, 388);
    assert_eq!(log.stats().live_entries, live.live_entries);
}

// Q13
#[test]
fn an_idle_log_lets_purged_segments_go() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let text = "x".repeat(700);
    for index in 1..=60 {
        log.append(&[entry(0, 1, index, &text)]).unwrap();
        log.sync().unwrap();
    }
    assert!(log.stats().segments > 4, "{:?}", log.stats());
    log.purge(0, 60, 1).unwrap();
    log.settle().unwrap();
    assert!(log.stats().bytes <= small().segment_bytes, "{:?}", log.stats());
}

#[test]
fn a_log_goes_back_to_an_older_snapshot_and_owes_what_it_had() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let entries: Vec<Record> = (1..=9).map(|index| entry(0, 1, index, "x")).collect();
    log.append(&entries).unwrap();
    log.purge(0, 6, 1).unwrap();
    log.append(&[Record::Start { shard: 0, index: 4, term: 1 }]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (_, recovery) = open(&disk);
    let shard = &recovery.shards[&0];
    assert_eq!((shard.start_index, shard.entries.len(), shard.floor), (4, 0, 9));
}

#[test]
fn a_batch_larger_than_a_segment_still_fits() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let text = "y".repeat(50_000);
    log.append(&[entry(0, 1, 1, &text)]).unwrap();
    log.append(&[entry(0, 1, 2, &text)]).unwrap();
    log.sync().unwrap();
    disk.crash(&mut fastrand::Rng::with_seed(5));
    assert_eq!(open(&disk).1.shards[&0].entries.len(), 2);
}

#[test]
fn a_failed_sync_closes_the_log() {
    // F-13
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    log.append(&[entry(0, 1, 1, "a")]).unwrap();
    disk.fail_next_sync();
    assert!(matches!(log.sync(), Err(Fault::Io { .. })));
    assert!(matches!(log.sync(), Err(Fault::Closed)), "never retried");
    assert!(matches!(log.append(&[entry(0, 1, 2, "b")]), Err(Fault::Closed)));
}

#[test]
fn a_full_disk_is_named_and_harms_nothing() {
    // F-12
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let text = "z".repeat(900);
    let used: u64 = disk.files().iter().map(|file| file.1).sum();
    disk.set_capacity(Some(used + 4_000));
    let mut index = 1;
    let fault = loop {
        match log.append(&[entry(0, 1, index, &text)]).and_then(|()| log.sync()) {
            Ok(()) => index += 1,
            Err(fault) => break fault,
        }
    };
    assert!(fault.is_retryable(), "{fault}");
    disk.set_capacity(None);
    log.append(&[entry(0, 1, index, &text)]).unwrap();
    log.sync().unwrap();
    disk.crash(&mut fastrand::Rng::with_seed(6));
    let (_, recovery) = open(&disk);
    assert_eq!(recovery.shards[&0].last_index(), index);
}

#[test]
fn the_spare_keeps_a_whole_segment_of_room_on_a_full_disk() {
    // F-12
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let text = "z".repeat(900);
    let used = |disk: &SimDisk| disk.files().iter().map(|file| file.1).sum::<u64>();
    assert!(!log.is_low(), "there is room");
    // The tables of votes know the shard from now on.
    log.append(&[entry(0, 1, 1, &text)]).and_then(|()| log.sync()).unwrap();
    disk.set_capacity(Some(used(&disk)));
    let segment = log.stats().segments;
    let mut index = 2;
    while log.stats().segments == segment {
        log.append(&[entry(0, 1, index, &text)]).and_then(|()| log.sync()).unwrap();
        index += 1;
    }
    assert!(
        log.is_low() && !log.make_spare().unwrap(),
        "the spare is in use, and there is no room for another"
    );
    let fault = loop {
        match log.append(&[entry(0, 1, index, &text)]).and_then(|()| log.sync()) {
            Ok(()) => index += 1,
            Err(fault) => break fault,
        }
    };
    assert!(fault.is_retryable(), "{fault}");
    // A snapshot makes room, and everything goes on by itself.
    log.purge(0, index - 1, 1).unwrap();
    log.settle().unwrap();
    assert!(log.make_spare().unwrap());
    log.append(&[entry(0, 1, index, &text)]).and_then(|()| log.sync()).unwrap();
    disk.set_capacity(None);
    assert!(log.make_spare().unwrap());
    disk.crash(&mut fastrand::Rng::with_seed(6));
    // A start finds the spare's room for its own segment.
    disk.set_capacity(Some(used(&disk)));
    let (_, recovery) = open(&disk);
    assert_eq!(recovery.shards[&0].last_index(), index);
}

#[test]
#[should_panic(expected = "leaves a gap")]
fn a_gap_is_a_broken_caller() {
    let (mut log, _) = open(&SimDisk::new());
    let _ = log.append(&[entry(0, 1, 2, "x")]);
}

#[test]
fn files_of_another_node_are_refused() {
    // F-16
    let disk = SimDisk::new();
    drop(open(&disk));
    for (field, other) in [
        ("cluster", ikada_store::Identity { cluster: 5, ..identity() }),
        ("node", ikada_store::Identity { node: 5, ..identity() }),
        ("incarnation", ikada_store::Identity { incarnation: 5, ..identity() }),
    ] {
        let error = Log::open(disk.clone(), &other, small()).unwrap_err();
        assert!(matches!(&error, OpenError::Foreign { what, .. } if *what == field), "{error}");
    }
    let bytes = ikada_store::Disk::read(&disk, "wal/00000000000000000001.log").unwrap();
    disk.overwrite("wal/00000000000000000009.log", &bytes).unwrap();
    let error = Log::open(disk, &identity(), small()).unwrap_err();
    assert!(matches!(error, OpenError::Misplaced { .. }), "{error}");
}

#[test]
fn random_work_on_a_real_disk_matches_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let disk = ikada_store::RealDisk::open(folder.path()).unwrap();
    let mut rng = fastrand::Rng::with_seed(11);
    let mut model = Model::default();
    let options = LogOptions { segment_bytes: 16 << 10, ..small() };
    for _ in 0..6 {
        let (mut log, recovery) = Log::open(disk.clone(), &identity(), options.clone()).unwrap();
        assert_eq!(recovery.shards, model.shards);
        assert!(recovery.findings.is_empty());
        for _ in 0..40 {
            let batch = random_batch(&mut rng, &model);
            log.append(&batch).unwrap();
            model.apply(&batch);
            let id = rng.u16(0..4);
            if let Some(shard) = model.shards.get(&id)
                && shard.commit > shard.start_index
                && rng.bool()
            {
                let index = shard.commit;
                let term = shard.entries[(index - shard.start_index - 1) as usize].term;
                log.purge(id, index, term).unwrap();
                model.apply(&[Record::Start { shard: id, index, term }]);
            }
            if rng.bool() {
                log.sync().unwrap();
            }
        }
        log.sync().unwrap();
    }
}

// X9
#[test]
fn x_9_numbers_that_no_log_reaches_are_refused() {
    // Places of generation and batch in a table of votes.
    for (at, what) in [(40, "generation of votes"), (48, "batch")] {
        let disk = SimDisk::new();
        let (mut log, _) = open(&disk);
        log.append(&[Record::Hard { shard: 0, term: 1, vote: 3, commit: 0 }]).expect("appended");
        log.sync().expect("synced");
        drop(log);
        let mut table = disk.read("votes.mark").expect("read");
        table[at..at + 8].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
        let body = table.len() - 4;
        let checksum = crc32c::crc32c(&table[..body]);
        table[body..].copy_from_slice(&checksum.to_le_bytes());
        disk.replace("votes.mark", &table).expect("written");
        let error = Log::open(disk, &identity(), small()).expect_err("refused");
        assert!(matches!(error, OpenError::Number { what: told, .. } if told == what), "{error}");
    }
}
