//! Power cuts and kills at every step: what was synced is there, what was not is there whole or not at all.

mod world;

use ikada_store::{Log, Record, SimDisk};
use world::{Model, identity, random_batch, small};

const SEEDS: u64 = 400;

/// Everything the log may legally hold after a crash.
struct Legal {
    states: Vec<Model>,
    /// How often the rare paths were taken, so that a green run means something.
    rewritten: u64,
    deleted: u64,
    torn: u64,
}

impl Legal {
    fn new() -> Legal {
        Legal { states: vec![Model::default()], rewritten: 0, deleted: 0, torn: 0 }
    }

    fn newest(&self) -> &Model {
        self.states.last().expect("there is always one")
    }

    fn step(&mut self, records: &[Record]) {
        let mut next = self.newest().clone();
        next.apply(records);
        self.states.push(next);
    }

    fn synced(&mut self) {
        let newest = self.newest().clone();
        self.states = vec![newest];
    }
}

/// Works until the disk stops.
fn work(disk: &SimDisk, rng: &mut fastrand::Rng, legal: &mut Legal, turns: usize) {
    let Ok((mut log, recovery)) = Log::open(disk.clone(), &identity(), small()) else {
        return;
    };
    let found = Model { shards: recovery.shards.clone() };
    let position = legal.states.iter().rposition(|state| *state == found);
    assert!(position.is_some(), "recovered a state that never was, or lost a synced one");
    assert!(recovery.quarantined.is_empty(), "a crash is not damage: {:?}", recovery.findings);
    legal.states = vec![found];
    legal.torn += u64::from(recovery.torn_bytes > 0);
    for _ in 0..turns {
        let batch = random_batch(rng, legal.newest());
        legal.step(&batch);
        if log.append(&batch).is_err() {
            return;
        }
        let id = rng.u16(0..4);
        let shard = legal.newest().shards.get(&id).cloned().unwrap_or_default();
        if shard.commit > shard.start_index && rng.u8(0..4) == 0 {
            let index = shard.commit;
            let term = shard.entries[(index - shard.start_index - 1) as usize].term;
            legal.step(&[Record::Start { shard: id, index, term }]);
            if log.purge(id, index, term).is_err() {
                return;
            }
        }
        if rng.bool() {
            if log.sync().is_err() {
                return;
            }
            legal.synced();
            let stats = log.stats();
            legal.rewritten += u64::from(stats.rewritten_records > 0);
            legal.deleted += u64::from(stats.deleted_segments > 0);
        }
    }
}

#[test]
fn synced_work_survives_power_cuts() {
    // F-2, F-4
    let (mut rewritten, mut deleted, mut torn) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new();
        let mut legal = Legal::new();
        for _ in 0..8 {
            if rng.bool() {
                // Stops anywhere, also in the middle of an open or of a change of segments.
                disk.stop_after(rng.u64(0..120));
            }
            let turns = rng.usize(1..40);
            work(&disk, &mut rng, &mut legal, turns);
            if rng.u8(0..4) == 0 { disk.kill() } else { disk.crash(&mut rng) }
        }
        work(&disk, &mut rng, &mut legal, 1);
        (rewritten, deleted) = (rewritten + legal.rewritten, deleted + legal.deleted);
        torn += legal.torn;
    }
    assert!(rewritten > 100 && deleted > 100 && torn > 100, "{rewritten} {deleted} {torn}");
}

#[test]
fn an_open_may_be_interrupted_at_every_step() {
    for damaged in [false, true] {
        let (original, model) = world::sample(21, 30);
        if damaged {
            original.flip_bit("wal/00000000000000000002.log", 900, 2).unwrap();
        }
        for steps in 0..60 {
            let disk = original.fork();
            let mut rng = fastrand::Rng::with_seed(steps);
            disk.stop_after(steps);
            let finished = Log::open(disk.clone(), &identity(), small()).is_ok();
            disk.crash(&mut rng);
            let what = format!("damaged {damaged}, stopped after {steps}");
            let (_, recovery) = Log::open(disk, &identity(), small()).expect(&what);
            world::check_honest(&model, &recovery, &what);
            if !damaged {
                assert!(recovery.findings.is_empty(), "{what}: {:?}", recovery.findings);
            }
            if finished {
                assert!(recovery.findings.is_empty(), "{what}: {:?}", recovery.findings);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    // S-2
    let run = || {
        let mut rng = fastrand::Rng::with_seed(9);
        let disk = SimDisk::new();
        let mut legal = Legal::new();
        for _ in 0..5 {
            work(&disk, &mut rng, &mut legal, 30);
            disk.crash(&mut rng);
        }
        let bytes = |name: &str| ikada_store::Disk::read(&disk, name).unwrap();
        disk.files().iter().map(|file| (file.0.clone(), bytes(&file.0))).collect::<Vec<_>>()
    };
    assert!(run() == run());
}

#[test]
fn a_flip_after_a_power_cut_never_forgets_a_vote() {
    // A synced batch whose mark the cut took may be lost to a flip, but its vote lies in a second, synced file.
    let mut refused = 0;
    for seed in 0..SEEDS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new();
        let mut legal = Legal::new();
        let turns = rng.usize(1..40);
        work(&disk, &mut rng, &mut legal, turns);
        disk.crash(&mut rng);
        let files: Vec<_> = disk.files().into_iter().filter(|file| file.1 > 0).collect();
        let (name, _) = &files[rng.usize(..files.len())];
        let bytes = ikada_store::Disk::read(&disk, name).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last as u64 + 1);
        disk.flip_bit(name, rng.u64(..end), rng.u8(0..8)).unwrap();
        let Ok((_, recovery)) = Log::open(disk, &identity(), small()) else {
            refused += 1;
            continue;
        };
        for (id, synced) in &legal.states[0].shards {
            let found = recovery.shards.get(id).cloned().unwrap_or_default();
            let kept = found.term == synced.term && (found.vote == synced.vote || synced.vote == 0);
            assert!(
                found.term > synced.term || kept,
                "seed {seed}, {name}: shard {id} forgot its vote"
            );
        }
    }
    assert!(refused < SEEDS / 20, "{refused} refused");
}
