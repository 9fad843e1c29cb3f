//! A node's disk at work: batches are appended at once and synced after a while, several at a time; snapshot work
//! takes its time beside that. A failing disk ends the process.

use ikada_consensus::{IoRecord, NodeId};
use ikada_replica::output::{Input, SnapshotDone, SnapshotWork};
use ikada_store::Record;

use super::{Event, World};
use crate::check::Verdict;
use crate::draw::log_uniform;
use crate::marks::Mark;

/// A slow disk takes up to this long for a sync.
const SLOW_SYNC_US_MAX: u64 = 2_000_000;
/// One sync in so many of a slow disk hangs instead, up to the longest time below.
const HANG_ONE_IN: u64 = 16;
/// A hanging sync takes up to this long.
const HANG_US_MAX: u64 = 20_000_000;

impl World {
    /// Starts the next sync if there is something to write and the disk is idle.
    pub(super) fn kick_disk(&mut self, node: NodeId) -> Verdict {
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        if process.syncing.is_some() {
            return Ok(());
        }
        if process.batches.is_empty() {
            return self.purge(node);
        }
        let generation = machine.generation;
        let mut must_sync = false;
        let mut last = 0;
        while let Some((io, marks)) = process.batches.pop_front() {
            if process.log.append(&records(&io.records)).is_err() {
                return self.exit(node, "append failed");
            }
            machine.mirror.wrote(marks);
            must_sync |= io.must_sync;
            last = io.seq;
        }
        if !must_sync {
            self.input(node, generation, Input::Persisted(last));
            return self.purge(node);
        }
        process.syncing = Some(last);
        process.syncing_since_us = self.schedule.now_us();
        let delay_us = self.sync_us(node);
        self.schedule.after(delay_us, Event::Synced(node, generation));
        Ok(())
    }

    fn sync_us(&mut self, node: NodeId) -> u64 {
        let now_us = self.now_us();
        let knobs = &self.plan.knobs;
        let usual_us = log_uniform(&mut self.rng, knobs.sync_us_min, knobs.sync_us_max);
        let Some(machine) = self.machines.get(&node) else {
            return usual_us;
        };
        let usual_us = usual_us + machine.sync_extra_us;
        if machine.slow_until_us <= now_us {
            return usual_us;
        }
        if machine.leads_any() {
            self.marks.hit(Mark::SlowDiskLeader);
        }
        if self.rng.u64(0..HANG_ONE_IN) == 0 {
            return log_uniform(&mut self.rng, SLOW_SYNC_US_MAX, HANG_US_MAX);
        }
        usual_us + log_uniform(&mut self.rng, 10_000, SLOW_SYNC_US_MAX)
    }

    /// A sync comes to its end.
    pub(super) fn synced(&mut self, node: NodeId, generation: u64) -> Verdict {
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        if machine.generation != generation {
            return Ok(());
        }
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        let Some(last) = process.syncing.take() else {
            return Ok(());
        };
        let before = machine.disk.counters().syncs;
        if process.log.sync().is_err() {
            self.mark(Mark::SyncFailed);
            return self.exit(node, "sync failed");
        }
        // The disk is the witness: what it was never asked to sync is not durable, whatever the log says.
        let mut voted = false;
        if machine.disk.counters().syncs > before {
            voted = machine.mirror.synced();
        }
        if let Some((_, syncs)) = &mut process.purged {
            *syncs += 1;
        }
        self.note(node, "synced", (last, 0), |_| {});
        if voted {
            self.vote_synced(node);
        }
        self.input(node, generation, Input::Persisted(last));
        self.purge(node)?;
        self.kick_disk(node)
    }

    /// Snapshot work begins; its result comes later.
    pub(super) fn begin_snapshot_work(
        &mut self,
        node: NodeId,
        generation: u64,
        work: SnapshotWork,
    ) {
        let usual_us = log_uniform(&mut self.rng, 200, 50_000);
        if let (SnapshotWork::Save { .. }, Some(process)) = (&work, self.process_mut(node)) {
            process.saving += 1;
        }
        self.schedule.after(usual_us, Event::Snapshot(node, generation, Box::new(work)));
    }

    /// Snapshot work comes to its end.
    pub(super) fn snapshot_work(
        &mut self,
        node: NodeId,
        generation: u64,
        work: SnapshotWork,
    ) -> Verdict {
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        if machine.generation != generation {
            return Ok(());
        }
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        if matches!(work, SnapshotWork::Save { .. }) {
            process.saving = process.saving.saturating_sub(1);
        }
        let Ok(done) = process.receiving.perform(&process.snapshots, work) else {
            return self.exit(node, "snapshot work failed");
        };
        let (shard, mark) = match &done {
            SnapshotDone::Saved { shard, .. } => (*shard, Some(Mark::SnapshotSaved)),
            SnapshotDone::Manifest { shard, found: Some(_), .. } => {
                (*shard, Some(Mark::SnapshotSent))
            }
            SnapshotDone::Loaded { shard, .. } => (*shard, Some(Mark::SnapshotInstalled)),
            _ => (0, None),
        };
        if let SnapshotDone::Loaded { shard, start, .. } = &done {
            self.watch.restored.insert(*shard, start.index);
            let installed = process.installed.entry(*shard).or_default();
            *installed += 1;
            if *installed > 1 {
                self.marks.hit(Mark::SnapshotTwice);
            }
        }
        if let Some(mark) = mark {
            self.marks.hit(mark);
        }
        self.note(node, "snapshot", (u64::from(shard), mark.map_or(0, |mark| mark as u64)), |_| {});
        self.input(node, generation, Input::Snapshot(done));
        Ok(())
    }

    /// Gives log prefixes up, after everything that was handed over before them.
    fn purge(&mut self, node: NodeId) -> Verdict {
        let Some(process) = self.process_mut(node) else {
            return Ok(());
        };
        if !process.batches.is_empty() || process.purges.is_empty() {
            return Ok(());
        }
        let deleted = process.log.stats().deleted_segments;
        for (shard, start) in std::mem::take(&mut process.purges) {
            let purged = process.log.purge(shard, start.index, start.term);
            if purged.and_then(|()| process.log.settle()).is_err() {
                return self.exit(node, "purge failed");
            }
            process.purged = Some((process.log.stats().appended_bytes, 0));
        }
        if process.log.stats().deleted_segments > deleted {
            self.marks.hit(Mark::SegmentsPurged);
        }
        Ok(())
    }
}

fn records(records: &[IoRecord]) -> Vec<Record> {
    let mut out = Vec::with_capacity(records.len());
    for record in records {
        match record {
            IoRecord::Hard { shard, term, vote, commit } => {
                out.push(Record::Hard { shard: *shard, term: *term, vote: *vote, commit: *commit });
            }
            IoRecord::Append { shard, entries } => {
                out.extend(entries.iter().map(|entry| Record::Entry {
                    shard: *shard,
                    term: entry.term,
                    index: entry.index,
                    kind: entry.kind.number(),
                    data: entry.data.clone(),
                    context: entry.context.clone(),
                }))
            }
            IoRecord::Restart { shard, start } => {
                out.push(Record::Start { shard: *shard, index: start.index, term: start.term });
            }
        }
    }
    out
}
