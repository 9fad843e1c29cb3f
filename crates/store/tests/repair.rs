//! Damage, repair from a peer, more work, more damage: the log stays honest over many lives.

mod world;

use ikada_store::{Disk, Log, Record, RecoveredShard, SimDisk};
use world::{Model, check_honest, identity, random_batch, small};

/// What a leader would send to bring a shard back to what the cluster knows.
fn repair(id: u16, found: &RecoveredShard, known: &RecoveredShard) -> Vec<Record> {
    let mut records = Vec::new();
    if found.start_index < known.start_index {
        records.push(Record::Start { shard: id, index: known.start_index, term: known.start_term });
    }
    let (term, vote, commit) = (known.term, known.vote, known.commit);
    records.push(Record::Hard { shard: id, term, vote, commit });
    let held = found.last_index().max(known.start_index);
    for entry in known.entries.iter().filter(|entry| entry.index > held) {
        records.push(Record::Entry {
            shard: id,
            term: entry.term,
            index: entry.index,
            kind: entry.kind,
            data: entry.data.clone(),
            context: entry.context.clone(),
        });
    }
    records
}

fn flip_somewhere(disk: &SimDisk, rng: &mut fastrand::Rng) {
    let files: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|(name, _)| name.starts_with("wal/") || name.starts_with("votes"))
        .collect();
    let (name, _) = &files[rng.usize(..files.len())];
    let bytes = disk.read(name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last as u64 + 1);
    disk.flip_bit(name, rng.u64(..end), rng.u8(0..8)).unwrap();
}

#[test]
fn a_node_is_damaged_and_repaired_in_turns() {
    // F-15, R11
    for seed in 0..250 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new();
        let mut model = Model::default();
        for life in 0..7 {
            let what = format!("seed {seed}, life {life}");
            let opened = Log::open(disk.clone(), &identity(), small());
            let (mut log, recovery) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            check_honest(&model, &recovery, &what);
            for (id, known) in &model.shards {
                log.append(&repair(*id, &recovery.shards[id], known)).unwrap();
            }
            log.sync().unwrap();
            for _ in 0..rng.usize(0..25) {
                let batch = random_batch(&mut rng, &model);
                log.append(&batch).unwrap();
                model.apply(&batch);
                let id = rng.u16(0..4);
                let shard = model.shards.get(&id).cloned().unwrap_or_default();
                if shard.commit > shard.start_index && rng.u8(0..4) == 0 {
                    let index = shard.commit;
                    let term = shard.entries[(index - shard.start_index - 1) as usize].term;
                    log.purge(id, index, term).unwrap();
                    model.apply(&[Record::Start { shard: id, index, term }]);
                }
                log.sync().unwrap();
            }
            drop(log);
            disk.kill();
            flip_somewhere(&disk, &mut rng);
        }
    }
}
