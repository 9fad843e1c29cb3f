//! Torn tails, flipped bits, swapped files: told apart, and never silent.

mod world;

use ikada_store::{Disk, Log, OpenError, Record, Recovery, SimDisk};
use world::{Model, check_honest, entry, identity, open, sample, small};

fn newest_segment(disk: &SimDisk) -> String {
    let names = disk.list("wal").unwrap();
    format!("wal/{}", names.last().unwrap())
}

/// Opens twice: the second time must be quiet and see the same.
fn open_twice(disk: &SimDisk, what: &str) -> Result<Recovery, OpenError> {
    let (log, recovery) = Log::open(disk.clone(), &identity(), small())?;
    let damaged = recovery.shards.values().any(|shard| shard.damaged);
    assert!(!damaged || !recovery.quarantined.is_empty(), "{what}: damaged, nothing kept");
    drop(log);
    disk.kill();
    let (_, again) = Log::open(disk.clone(), &identity(), small()).expect(what);
    assert_eq!(again.shards, recovery.shards, "{what}: second open");
    assert!(again.findings.is_empty() && again.quarantined.is_empty(), "{what}: {again:?}");
    Ok(recovery)
}

#[test]
fn a_torn_batch_is_cut_at_every_byte() {
    // F-14
    let (disk, mut model) = sample(1, 12);
    let (mut log, _) = open(&disk);
    let name = newest_segment(&disk);
    let before = disk.read(&name).unwrap();
    let last = model.shards[&1].last_index();
    let batch = [entry(1, 90, last + 1, "never acknowledged"), entry(1, 90, last + 2, "nor this")];
    log.append(&batch).unwrap();
    drop(log);
    let after = disk.read(&name).unwrap();
    let from = before.iter().zip(&after).position(|(a, b)| a != b).unwrap();
    let to = after.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in from..to {
        for filler in [0u8, 0xA5] {
            let fork = disk.fork();
            let mut bytes = after.clone();
            bytes[cut..to].fill(filler);
            fork.overwrite(&name, &bytes).unwrap();
            let recovery = open_twice(&fork, &format!("cut at {cut}")).unwrap();
            assert_eq!(recovery.shards, model.shards, "cut at {cut}");
            assert!(recovery.quarantined.is_empty(), "cut at {cut}: {:?}", recovery.findings);
        }
    }
    model.apply(&batch);
    assert_eq!(open_twice(&disk, "whole").unwrap().shards, model.shards);
}

#[test]
fn a_synced_tail_is_never_cut_in_silence() {
    // F-14, F-15: the same bytes, but a mark beside the log says that they were durable
    let (disk, model) = sample(2, 10);
    let name = newest_segment(&disk);
    let bytes = disk.read(&name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for length in (0..end).rev().step_by(3) {
        let fork = disk.fork();
        fork.overwrite(&name, &bytes[..length]).unwrap();
        match open_twice(&fork, &format!("length {length}")) {
            Ok(recovery) => check_honest(&model, &recovery, &format!("length {length}")),
            Err(OpenError::RolledBack { .. }) => {}
            Err(error) => panic!("length {length}: {error}"),
        }
    }
}

#[test]
fn every_flipped_bit_is_harmless_or_told() {
    // F-15, R11
    let (disk, model) = sample(3, 25);
    let mut told = 0;
    for (name, length) in disk.files() {
        if !name.starts_with("wal/") && !name.starts_with("votes") {
            continue;
        }
        let bytes = disk.read(&name).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        // Every byte that means something, and a few of the reserved space.
        let offsets = (0..end).step_by(5).chain((end..length).step_by(1021));
        for offset in offsets {
            let what = format!("{name} byte {offset}");
            let fork = disk.fork();
            fork.flip_bit(&name, offset, (offset % 8) as u8).unwrap();
            let recovery =
                open_twice(&fork, &what).unwrap_or_else(|error| panic!("{what}: {error}"));
            check_honest(&model, &recovery, &what);
            told += u64::from(!recovery.quarantined.is_empty());
        }
    }
    assert!(told > 500, "only {told} flips were noticed");
}

#[test]
fn two_flipped_bits_in_the_log_are_told_as_well() {
    let mut rng = fastrand::Rng::with_seed(8);
    for round in 0..700 {
        let (disk, model) = sample(100 + round % 70, 30);
        let segments: Vec<_> =
            disk.files().into_iter().filter(|f| f.0.starts_with("wal/")).collect();
        for _ in 0..2 {
            let (name, _) = &segments[rng.usize(..segments.len())];
            let bytes = disk.read(name).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
            disk.flip_bit(name, rng.u64(..=end), rng.u8(0..8)).unwrap();
        }
        let what = format!("round {round}");
        let recovery = open_twice(&disk, &what).unwrap_or_else(|error| panic!("{what}: {error}"));
        check_honest(&model, &recovery, &what);
    }
}

#[test]
fn a_floor_stays_until_the_log_reaches_it_again() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    for index in 1..=6 {
        let hard = Record::Hard { shard: 0, term: 1, vote: 1, commit: index - 1 };
        log.append(&[hard, entry(0, 1, index, "some text")]).unwrap();
        log.sync().unwrap();
    }
    drop(log);
    let name = newest_segment(&disk);
    let bytes = disk.read(&name).unwrap();
    let third = bytes.windows(9).enumerate().filter(|(_, w)| *w == b"some text").nth(2).unwrap().0;
    disk.flip_bit(&name, third as u64, 0).unwrap();
    let (mut log, recovery) = open(&disk);
    let shard = &recovery.shards[&0];
    assert_eq!((shard.last_index(), shard.floor, shard.damaged), (2, 6, true));
    assert_eq!(recovery.quarantined.len(), 1);
    log.append(&[entry(0, 2, 3, "repaired"), entry(0, 2, 4, "too")]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (mut log, recovery) = open(&disk);
    let shard = &recovery.shards[&0];
    assert_eq!((shard.last_index(), shard.floor, shard.damaged), (4, 6, true));
    log.append(&[entry(0, 2, 5, "and"), entry(0, 2, 6, "whole")]).unwrap();
    log.sync().unwrap();
    drop(log);
    let shard = &open(&disk).1.shards[&0];
    assert_eq!((shard.last_index(), shard.damaged), (6, false));
}

#[test]
fn an_older_copy_is_noticed() {
    // F-16
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    let text = "t".repeat(300);
    let mut model = Model::default();
    let mut copies = Vec::new();
    for index in 1..=60 {
        let batch =
            [entry(0, 1, index, &text), Record::Hard { shard: 0, term: 1, vote: 2, commit: index }];
        log.append(&batch).unwrap();
        log.sync().unwrap();
        model.apply(&batch);
        let name = newest_segment(&disk);
        copies.push((name.clone(), disk.read(&name).unwrap()));
    }
    drop(log);
    let last = newest_segment(&disk);
    let mut refused = 0;
    for (name, bytes) in copies.iter().filter(|(name, bytes)| disk.read(name).unwrap() != *bytes) {
        let fork = disk.fork();
        fork.overwrite(name, bytes).unwrap();
        match open_twice(&fork, name) {
            Err(OpenError::RolledBack { .. }) => {
                refused += 1;
                assert_eq!(*name, last);
            }
            Err(error) => panic!("{name}: {error}"),
            Ok(recovery) => {
                check_honest(&model, &recovery, name);
                // Only marks may be missing from a copy that is not told.
                assert!(!recovery.quarantined.is_empty() || !recovery.shards[&0].damaged, "{name}");
            }
        }
    }
    assert!(refused > 0);
    // A missing segment, first, middle or last.
    for name in disk.list("wal").unwrap() {
        let fork = disk.fork();
        let name = format!("wal/{name}");
        fork.remove(&name).unwrap();
        match open_twice(&fork, &name) {
            Ok(recovery) => check_honest(&model, &recovery, &name),
            Err(OpenError::RolledBack { .. }) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn a_lost_log_beside_a_votes_file_is_refused() {
    // F-17
    let (disk, _) = sample(5, 5);
    for name in disk.list("wal").unwrap() {
        disk.remove(&format!("wal/{name}")).unwrap();
    }
    let error = Log::open(disk, &identity(), small()).unwrap_err();
    assert!(matches!(error, OpenError::RolledBack { found: 0, .. }), "{error}");
}

#[test]
fn a_vote_survives_damage_to_either_copy_but_not_to_both() {
    let disk = SimDisk::new();
    let (mut log, _) = open(&disk);
    log.append(&[Record::Hard { shard: 4, term: 8, vote: 2, commit: 0 }]).unwrap();
    log.sync().unwrap();
    drop(log);
    let name = newest_segment(&disk);
    let bytes = disk.read(&name).unwrap();
    let written = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let wreck = |disk: &SimDisk| {
        // All after the checkpoint's mark: the vote's batch and its mark.
        let mut bytes = bytes.clone();
        bytes[written - 150..=written].fill(0xEE);
        disk.overwrite(&name, &bytes).unwrap();
    };
    let fork = disk.fork();
    wreck(&fork);
    let recovery = open_twice(&fork, "log wrecked").unwrap();
    assert_eq!((recovery.shards[&4].term, recovery.shards[&4].vote), (8, 2));
    let fork = disk.fork();
    for votes in ["votes.0", "votes.1", "votes.mark"] {
        fork.flip_bit(votes, 70, 3).unwrap_or_else(|_| fork.flip_bit(votes, 20, 3).unwrap());
    }
    let recovery = open_twice(&fork, "votes wrecked").unwrap();
    assert_eq!((recovery.shards[&4].term, recovery.shards[&4].vote), (8, 2));
}

#[test]
fn both_copies_of_a_vote_gone_is_a_refusal() {
    let (disk, model) = sample(6, 30);
    assert!(model.shards.values().any(|shard| shard.vote != 0));
    for votes in ["votes.0", "votes.1", "votes.mark"] {
        disk.flip_bit(votes, 24, 1).unwrap();
    }
    // Votes can be proven again by later marks, so wreck the end of the log, marks and all.
    let name = newest_segment(&disk);
    let mut bytes = disk.read(&name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let third = bytes.len().min(end) / 3;
    bytes[third..end - 60].fill(0x77);
    disk.overwrite(&name, &bytes).unwrap();
    match Log::open(disk, &identity(), small()) {
        Err(OpenError::VoteLost { .. }) => {}
        Err(error) => panic!("{error}"),
        Ok((_, recovery)) => check_honest(&model, &recovery, "both"),
    }
}

#[test]
fn a_misdirected_write_is_told() {
    for target in [0, 64, 200, 777, 4_096, 30_000] {
        for turns in 1..12 {
            let (disk, mut model) = sample(40, turns);
            let mut rng = fastrand::Rng::with_seed(turns as u64);
            let (mut log, _) = open(&disk);
            for round in 0..6 {
                let batch = world::random_batch(&mut rng, &model);
                if round == 3 {
                    disk.misdirect_next_write(target);
                }
                log.append(&batch).unwrap();
                log.sync().unwrap();
                model.apply(&batch);
            }
            drop(log);
            let what = format!("to {target} after {turns} turns");
            match open_twice(&disk, &what) {
                Ok(recovery) => check_honest(&model, &recovery, &what),
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_as_a_segment_never_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4000),
        at in 0usize..3000,
        whole in proptest::prelude::any::<bool>(),
    ) {
        // F-23
        let (disk, _) = sample(50, 8);
        let name = newest_segment(&disk);
        let mut content = disk.read(&name).unwrap();
        if whole {
            content = bytes;
        } else {
            let to = content.len().min(at + bytes.len());
            content[at..to].copy_from_slice(&bytes[..to - at]);
        }
        disk.overwrite(&name, &content).unwrap();
        drop(Log::open(disk.clone(), &identity(), small()));
        disk.overwrite("votes.0", &content).unwrap();
        drop(Log::open(disk, &identity(), small()));
    }
}
