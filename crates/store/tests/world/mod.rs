//! A plain model of the log, and helpers to drive a real one beside it.
#![allow(dead_code)] // every test file uses its own part

use bytes::Bytes;
use ikada_store::{
    Identity, Log, LogOptions, Record, RecoveredEntry, RecoveredShard, Recovery, SimDisk,
};
use std::collections::BTreeMap;

/// What the log should remember.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub shards: BTreeMap<u16, RecoveredShard>,
}

impl Model {
    pub fn apply(&mut self, records: &[Record]) {
        for record in records {
            match record.clone() {
                Record::Entry { shard, term, index, kind, data, context } => {
                    let shard = self.shards.entry(shard).or_default();
                    shard.entries.truncate((index - shard.start_index - 1) as usize);
                    shard.entries.push(RecoveredEntry { term, index, kind, data, context });
                }
                Record::Hard { shard, term, vote, commit } => {
                    let shard = self.shards.entry(shard).or_default();
                    (shard.term, shard.vote, shard.commit) = (term, vote, commit);
                }
                Record::Start { shard, index, term } => {
                    self.shards.entry(shard).or_default().restart(index, term);
                }
            }
        }
        for shard in self.shards.values_mut() {
            shard.floor = shard.last_index();
            shard.commit = shard.commit.clamp(shard.start_index, shard.last_index());
        }
    }
}

trait Restart {
    fn restart(&mut self, index: u64, term: u64);
}

impl Restart for RecoveredShard {
    fn restart(&mut self, index: u64, term: u64) {
        let at = index.checked_sub(self.start_index + 1).map(|position| position as usize);
        let held = match at {
            None => index == self.start_index && self.start_term == term,
            Some(at) => self.entries.get(at).is_some_and(|entry| entry.term == term),
        };
        if held {
            self.entries.drain(..at.map_or(0, |at| at + 1));
        } else {
            self.entries.clear();
        }
        (self.start_index, self.start_term) = (index, term);
    }
}

pub fn identity() -> Identity {
    Identity { cluster: 0xC1, node: 3, incarnation: 77, name: "three".into() }
}

pub fn small() -> LogOptions {
    LogOptions { segment_bytes: 8 << 10, rewrite_bytes: 1 << 10 }
}

pub fn entry(shard: u16, term: u64, index: u64, text: &str) -> Record {
    let data = Bytes::copy_from_slice(text.as_bytes());
    Record::Entry { shard, term, index, kind: (index % 2) as u8, data, context: Bytes::new() }
}

pub fn open(disk: &SimDisk) -> (Log<SimDisk>, Recovery) {
    Log::open(disk.clone(), &identity(), small()).expect("opens")
}

/// A random legal batch for a model, with up to four shards.
pub fn random_batch(rng: &mut fastrand::Rng, model: &Model) -> Vec<Record> {
    let mut model = model.clone();
    let mut records = Vec::new();
    for _ in 0..rng.usize(1..6) {
        let id = rng.u16(0..4);
        let shard = model.shards.entry(id).or_default().clone();
        let (start, last) = (shard.start_index, shard.last_index());
        let record = match rng.u8(0..20) {
            0..3 => {
                let term = shard.term + rng.u64(0..2);
                let vote =
                    if term == shard.term && shard.vote != 0 { shard.vote } else { rng.u64(1..4) };
                Record::Hard {
                    shard: id,
                    term,
                    vote,
                    commit: rng.u64(shard.commit..=last.max(shard.commit)),
                }
            }
            3 if rng.u8(0..4) == 0 => {
                Record::Start { shard: id, index: last + rng.u64(0..3), term: shard.term + 1 }
            }
            _ => {
                // Committed entries are never replaced; others sometimes are.
                let low = shard.commit.max(start) + 1;
                let index = if rng.u8(0..6) == 0 { rng.u64(low..=last + 1) } else { last + 1 };
                let length =
                    if rng.u8(0..8) == 0 { rng.usize(500..1500) } else { rng.usize(0..60) };
                let data: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
                let context = Bytes::copy_from_slice(&data[..length / 3]);
                let term = shard.term + 1;
                Record::Entry {
                    shard: id,
                    term,
                    index,
                    kind: rng.u8(0..2),
                    data: data.into(),
                    context,
                }
            }
        };
        model.apply(std::slice::from_ref(&record));
        records.push(record);
    }
    records
}

/// A log with several segments, everything synced; and what it holds.
pub fn sample(seed: u64, turns: usize) -> (SimDisk, Model) {
    let disk = SimDisk::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut log, _) = open(&disk);
    let mut model = Model::default();
    for _ in 0..turns {
        let batch = random_batch(&mut rng, &model);
        log.append(&batch).expect("appends");
        model.apply(&batch);
        log.sync().expect("syncs");
    }
    disk.kill();
    (disk, model)
}

/// What may be believed of a damaged log: never a wrong entry, never a shorter log without saying so, never an
/// older vote.
pub fn check_honest(model: &Model, recovery: &Recovery, what: &str) {
    for (id, expected) in &model.shards {
        let Some(found) = recovery.shards.get(id) else { panic!("{what}: shard {id} forgotten") };
        assert_eq!(
            (found.term, found.vote),
            (expected.term, expected.vote),
            "{what}: shard {id} vote"
        );
        assert!(found.floor >= expected.last_index(), "{what}: shard {id} floor {}", found.floor);
        assert_eq!(found.damaged, found.floor > found.last_index(), "{what}: shard {id}");
        if !found.damaged {
            // A commit index is a hint, the leader tells it again; and a lost purge costs only space.
            assert!(found.commit <= expected.commit, "{what}: shard {id} commit");
            assert!(found.start_index <= expected.start_index, "{what}: shard {id} start");
            let mut same = found.clone();
            same.restart(expected.start_index, expected.start_term);
            same.commit = expected.commit;
            assert!(same == *expected, "{what}: shard {id} differs and does not say so");
            continue;
        }
        for entry in &found.entries {
            let Some(at) = entry.index.checked_sub(expected.start_index + 1) else {
                continue;
            };
            let same = expected.entries.get(at as usize) == Some(entry);
            assert!(same, "{what}: shard {id} entry {} is not the last one written", entry.index);
        }
    }
}
