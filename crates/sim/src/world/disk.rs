//! A node's disk at work: batches are appended at once and synced after a while, several at a time; snapshot work
//! takes its time beside that. A failing disk ends the process; a full one is waited out.

use ikada_consensus::{IoRecord, NodeId};
use ikada_replica::output::{Input, SnapshotDone, SnapshotWork};
use ikada_state::ShardId;
use ikada_store::Record;

use super::{Event, World};
use crate::check::Verdict;
use crate::draw::log_uniform;
use crate::marks::Mark;

/// A slow disk takes up to this long for a sync.
const SLOW_SYNC_US_MAX: u64 = 2_000_000;
/// One sync in so many of a slow disk hangs instead, up to the longest time below.
const HANG_ONE_IN: u64 = 16;
/// How often a full disk is tried.
const FULL_RETRY_US: u64 = 200_000;
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
            self.tell_room(node)?;
            return self.purge(node, false);
        }
        let generation = machine.generation;
        let mut must_sync = false;
        let mut last = 0;
        let mut is_full = false;
        while let Some((io, marks)) = process.batches.pop_front() {
            match process.log.append(&records(&io.records)) {
                Ok(()) => {}
                Err(fault) if fault.is_retryable() => {
                    process.batches.push_front((io, marks));
                    is_full = true;
                    break;
                }
                Err(_) => return self.exit(node, "append failed"),
            }
            machine.mirror.wrote(marks);
            must_sync |= io.must_sync;
            last = io.seq;
        }
        if is_full {
            self.marks.hit(Mark::DiskWaitedFor);
        }
        if is_full && last == 0 {
            self.purge(node, true)?;
        }
        self.tell_room(node)?;
        if last == 0 {
            return Ok(());
        }
        if !must_sync {
            self.input(node, generation, Input::Persisted(last));
            return self.purge(node, false);
        }
        let now_us = self.schedule.now_us();
        let Some(process) = self.process_mut(node) else {
            return Ok(());
        };
        process.syncing = Some(last);
        process.syncing_since_us = now_us;
        let delay_us = self.sync_us(node);
        self.schedule.after(delay_us, Event::Synced(node, generation));
        Ok(())
    }

    /// A full disk may have room now.
    pub(super) fn retry_disk(&mut self, node: NodeId, generation: u64) -> Verdict {
        let is_same = self.machines.get(&node).is_some_and(|m| m.generation == generation);
        let Some(process) = self.process_mut(node).filter(|_| is_same) else {
            return Ok(());
        };
        process.retry_due = false;
        self.kick_disk(node)
    }

    /// Says whether the disk has room, when that has changed; looks again later if it has none.
    fn tell_room(&mut self, node: NodeId) -> Verdict {
        let Some(machine) = self.machines.get_mut(&node) else {
            return Ok(());
        };
        let generation = machine.generation;
        let Some(process) = &mut machine.process else {
            return Ok(());
        };
        let Ok(has_room) = process.log.make_spare() else {
            return self.exit(node, "spare segment failed");
        };
        let waits = !has_room || !process.batches.is_empty();
        if waits && !std::mem::replace(&mut process.retry_due, waits) {
            self.schedule.after(FULL_RETRY_US, Event::Retry(node, generation));
        }
        if process.is_low == has_room {
            process.is_low = !has_room;
            self.input(node, generation, Input::DiskLow(!has_room));
            self.marks.hit(Mark::DiskLow);
        }
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
        // Where logs are in a database, the place of the vote says something else.
        if voted && self.plan.database.is_none() {
            self.vote_synced(node);
        }
        self.input(node, generation, Input::Persisted(last));
        self.purge(node, false)?;
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

    /// Gives log prefixes up, after everything that was handed over before them; on a full disk before it, except where a
    /// log is about to begin anew.
    fn purge(&mut self, node: NodeId, is_full: bool) -> Verdict {
        let Some(process) = self.process_mut(node) else {
            return Ok(());
        };
        if (!process.batches.is_empty() && !is_full) || process.purges.is_empty() {
            return Ok(());
        }
        let waiting = process.batches.iter().flat_map(|(io, _)| &io.records);
        let restarts: Vec<ShardId> = waiting
            .filter_map(|record| match record {
                IoRecord::Restart { shard, .. } => Some(*shard),
                _ => None,
            })
            .collect();
        let deleted = process.log.stats().deleted_segments;
        for (shard, start) in std::mem::take(&mut process.purges) {
            if restarts.contains(&shard) {
                process.purges.push((shard, start));
                continue;
            }
            let purged = process.log.purge(shard, start.index, start.term);
            match purged.and_then(|()| process.log.settle()) {
                Ok(()) => {}
                Err(fault) if fault.is_retryable() => {
                    process.purges.push((shard, start));
                    continue;
                }
                Err(_) => return self.exit(node, "purge failed"),
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
