//! Sync: everything appended so far becomes durable, then a mark says so. And the change of segments.
//!
//! Order matters: the log, then the votes file, then (un-synced) the marks. Whoever reads a mark may rely on the
//! rest. A segment is opened only after everything in the one before it is durable.

use super::append::Batch;
use super::frame::{
    BASE_TAIL_BYTES, FORMAT, HEADER_BYTES, Head, Kind, PROOF_BYTES, Place, SEGMENT_HEADER_BYTES,
    SegmentHeader, encode, frame_bytes,
};
use super::shard::Segment;
use super::{FOLDER, Fault, Log, segment_name};
use crate::disk::{Disk, DiskFile};
use crate::planted::{self, Bug};

impl<D: Disk> Log<D> {
    /// Makes everything appended so far durable: one data sync however many shards, plus one for the votes file
    /// if a term or vote changed. A [`Fault`] here means that nothing may be assumed: exit, never retry.
    pub fn sync(&mut self) -> Result<(), Fault> {
        self.check_open()?;
        if self.batch == self.durable && !self.votes_stale {
            return Ok(());
        }
        self.sync_file()?;
        self.write_votes()?;
        self.write_marks()?;
        self.delete_segments()
    }

    /// Syncs until nothing waits for a later sync: then the files of purged segments are gone even if nobody writes any
    /// more. Called after a purge, which is rare.
    pub fn settle(&mut self) -> Result<(), Fault> {
        self.sync()?;
        if self.proven != self.durable && !planted::active(Bug::SyncSkipped) {
            self.sync_marks()?;
        }
        self.delete_segments()
    }

    /// Syncs the current segment, and with it the mark that lies in it.
    fn sync_file(&mut self) -> Result<(), Fault> {
        if self.batch == self.durable {
            return Ok(());
        }
        if !planted::active(Bug::SyncSkipped) {
            self.file.sync().map_err(|error| self.fail("syncing the log", error))?;
        }
        self.proven = self.durable;
        self.durable = self.batch;
        self.stats.syncs += 1;
        Ok(())
    }

    fn write_votes(&mut self) -> Result<(), Fault> {
        if !std::mem::take(&mut self.votes_stale) || planted::active(Bug::VotesNotWritten) {
            return Ok(());
        }
        self.write_votes_now()
    }

    pub(super) fn write_votes_now(&mut self) -> Result<(), Fault> {
        self.gather_proofs();
        let written = self.votes.write(&self.identity, self.durable, &self.proofs);
        written.map_err(|error| self.fail("writing the votes file", error))
    }

    fn gather_proofs(&mut self) {
        self.proofs.clear();
        self.proofs.extend(self.shards.iter().map(super::shard::Shard::proof));
    }

    /// Writes the marks, in the segment and beside it.
    pub(super) fn write_marks(&mut self) -> Result<(), Fault> {
        let mut payload = Vec::new();
        for shard in self.shards.iter_mut().filter(|shard| shard.touched) {
            shard.touched = false;
            shard.proof().encode(&mut payload);
        }
        let head = Head {
            kind: Kind::Mark,
            tag: 0,
            shard: 0,
            term: 0,
            index: self.durable,
            chain: 0,
            batch: self.durable,
        };
        self.buffer.clear();
        encode(&mut self.buffer, &self.place, self.tail, &head, [&payload, &[]], None);
        let written = self.file.write_at(self.tail, &self.buffer);
        written.map_err(|error| self.fail("writing a mark", error))?;
        self.tail += self.buffer.len() as u64;
        self.note_tail();
        self.gather_proofs();
        let written = self.votes.write_mark(&self.identity, self.durable, &self.proofs);
        written.map_err(|error| self.fail("writing a mark", error))
    }

    /// Deletes segments that are not needed, once it is proven (not only true) that a record says so:
    /// recovery must not take them for lost.
    fn delete_segments(&mut self) -> Result<(), Fault> {
        if self.low_batch > self.proven {
            return Ok(());
        }
        while let Some(oldest) = self.segments.list.front()
            && oldest.number < self.low
        {
            let name = segment_name(oldest.number);
            self.disk.remove(&name).map_err(|error| self.fail("deleting a segment", error))?;
            self.segments.list.pop_front();
            self.stats.deleted_segments += 1;
        }
        Ok(())
    }

    /// Opens the next segment if the batch would not fit into this one.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<(), Fault> {
        // With the mark that follows it: a full disk gives no byte beyond what the segment has.
        let mark = frame_bytes(self.shards.iter().count() * PROOF_BYTES) as u64;
        let fits = self.tail + bytes + mark <= self.options.segment_bytes;
        if fits || self.tail <= self.checkpoint_end {
            return Ok(());
        }
        self.roll()
    }

    fn roll(&mut self) -> Result<(), Fault> {
        let number = self.current() + 1;
        let file = self.next_file(number)?;
        // Also when only a mark is un-synced: a closed segment must never tear.
        self.sync_file()?;
        self.sync_marks()?;
        self.file = file;
        self.start_segment(number)?;
        self.make_spare()?;
        Ok(())
    }

    /// Makes the fresh file the current segment: header, checkpoint, sync, sync of the folder, mark.
    pub(super) fn start_segment(&mut self, number: u64) -> Result<(), Fault> {
        assert!(self.batch == self.durable, "a segment opens only on a durable log");
        self.place = Place::new(&self.identity, number);
        self.tail = 0;
        self.segments.list.push_back(Segment { number, bytes: 0, live_entries: 0, live_bytes: 0 });
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let header = SegmentHeader {
            format: FORMAT,
            cluster: self.identity.cluster,
            node: self.identity.node,
            incarnation: self.identity.incarnation,
            number,
            first_batch: self.batch + 1,
        };
        header.encode(&mut buffer);
        let mut batch = self.batch(&mut buffer);
        self.put_checkpoint(&mut batch);
        self.write_batch(buffer)?;
        self.sync_file()?;
        let synced = self.disk.sync_dir(FOLDER);
        synced.map_err(|error| self.fail("syncing the log's folder", error))?;
        // The header, synced, says that everything before it is durable.
        self.proven = self.durable - 1;
        self.write_marks()?;
        self.checkpoint_end = self.tail;
        Ok(())
    }

    /// Syncs the mark itself: for once, what is durable must also be proven.
    pub(super) fn sync_marks(&mut self) -> Result<(), Fault> {
        self.file.sync().map_err(|error| self.fail("syncing the log", error))?;
        self.proven = self.durable;
        Ok(())
    }

    fn put_checkpoint(&self, batch: &mut Batch<'_>) {
        let shards = self.shards.iter().count();
        let bytes = 2 * HEADER_BYTES + shards * frame_bytes(BASE_TAIL_BYTES);
        assert!(batch.buffer.len() == SEGMENT_HEADER_BYTES, "checkpoint follows the header");
        batch.begin(shards as u64 + 1, bytes as u64, self.durable);
        let trim = trim_head(self.low, false, batch.number);
        batch.put(&trim, [&[], &[]], None);
        for shard in self.shards.iter() {
            let (head, tail) = shard.base(batch.number);
            batch.put(&head, [&tail.encode(), &[]], None);
        }
    }
}

/// Says that segments below `low` are not needed.
pub(super) fn trim_head(low: u64, quarantine: bool, batch: u64) -> Head {
    let tag = u8::from(quarantine);
    Head { kind: Kind::Trim, tag, shard: 0, term: 0, index: low, chain: 0, batch }
}

/// Creates a file with its space reserved; leaves nothing behind if there is none.
pub(super) fn create_file<D: Disk>(disk: &D, name: &str, bytes: u64) -> std::io::Result<D::File> {
    let mut file = disk.create(name)?;
    if let Err(error) = file.preallocate(bytes) {
        drop(file);
        disk.remove(name)?;
        return Err(error);
    }
    Ok(file)
}
