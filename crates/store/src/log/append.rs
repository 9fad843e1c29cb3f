//! Append: one call, one batch, one write.
//!
//! Positions in memory move before the write; if the write fails the handle is closed, so they are never
//! seen. Running out of space while opening the next segment is noticed before anything moves, and
//! can be retried.

use super::frame::{HEADER_BYTES, Head, Kind, Place, TAG_BACK, encode, frame_bytes};
use super::shard::{Segments, Shard, Slot};
use super::{Fault, Log, Record};
use crate::disk::{Disk, DiskFile};

/// The batch being put together.
pub(super) struct Batch<'a> {
    pub(super) buffer: &'a mut Vec<u8>,
    pub(super) place: Place,
    /// Where the buffer will lie in the segment.
    pub(super) base: u64,
    pub(super) segment: u64,
    pub(super) number: u64,
}

impl Batch<'_> {
    /// Begins a batch of this many frames and bytes (its own head included).
    pub(super) fn begin(&mut self, frames: u64, bytes: u64, durable: u64) {
        let head = Head {
            kind: Kind::Batch,
            tag: 0,
            shard: 0,
            term: frames,
            index: bytes,
            chain: durable,
            batch: self.number,
        };
        self.put(&head, [&[], &[]], None);
    }

    pub(super) fn put(&mut self, head: &Head, payload: [&[u8]; 2], previous: Option<u64>) -> u64 {
        encode(self.buffer, &self.place, self.base, head, payload, previous)
    }
}

fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Entry { data, context, .. } => frame_bytes(data.len() + context.len()),
        Record::Hard { .. } | Record::Start { .. } => HEADER_BYTES,
    }
}

impl<D: Disk> Log<D> {
    /// Writes records as one batch, in order. Durable after the next [`Log::sync`].
    ///
    /// # Panics
    /// If an entry would leave a gap, lies at or below the shard's start, or a start lies below the current
    /// one: the caller's engine is broken, and writing on would make it permanent.
    pub fn append(&mut self, records: &[Record]) -> Result<(), Fault> {
        self.check_open()?;
        if records.is_empty() {
            return Ok(());
        }
        let bytes = HEADER_BYTES + records.iter().map(record_bytes).sum::<usize>();
        self.make_room(bytes as u64)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut batch = self.batch(&mut buffer);
        batch.begin(records.len() as u64, bytes as u64, self.durable);
        for record in records {
            self.stage(&mut batch, record);
        }
        assert!(buffer.len() == bytes, "batch has another length than announced");
        self.write_batch(buffer)?;
        self.stats.appended_records += records.len() as u64;
        self.stats.appended_bytes += bytes as u64;
        Ok(())
    }

    /// The next batch, to be written at the tail.
    pub(super) fn batch<'a>(&self, buffer: &'a mut Vec<u8>) -> Batch<'a> {
        Batch {
            buffer,
            place: self.place,
            base: self.tail,
            segment: self.current(),
            number: self.batch + 1,
        }
    }

    /// Writes a finished batch and takes the buffer back for reuse.
    pub(super) fn write_batch(&mut self, buffer: Vec<u8>) -> Result<(), Fault> {
        let written = self.file.write_at(self.tail, &buffer);
        written.map_err(|error| self.fail("appending", error))?;
        self.tail += buffer.len() as u64;
        self.batch += 1;
        self.stats.batches += 1;
        self.note_tail();
        self.buffer = buffer;
        Ok(())
    }

    fn stage(&mut self, batch: &mut Batch<'_>, record: &Record) {
        match record {
            Record::Entry { shard, term, index, kind, data, context } => {
                let head = Head {
                    kind: Kind::Entry,
                    tag: *kind,
                    shard: *shard,
                    term: *term,
                    index: *index,
                    chain: 0,
                    batch: batch.number,
                };
                let shard = self.shards.get(*shard);
                stage_entry(shard, &mut self.segments, batch, &head, [data, context]);
            }
            Record::Hard { shard, term, vote, commit } => {
                let head = Head {
                    kind: Kind::Hard,
                    tag: 0,
                    shard: *shard,
                    term: *term,
                    index: *commit,
                    chain: *vote,
                    batch: batch.number,
                };
                batch.put(&head, [&[], &[]], None);
                let shard = self.shards.get(*shard);
                self.votes_stale |= (shard.term, shard.vote) != (*term, *vote);
                (shard.term, shard.vote, shard.commit) = (*term, *vote, *commit);
                shard.touched = true;
            }
            Record::Start { shard, index, term } => {
                let shard = self.shards.get(*shard);
                stage_start(shard, &mut self.segments, batch, *index, *term);
            }
        }
    }
}

fn stage_entry(
    shard: &mut Shard,
    segments: &mut Segments,
    batch: &mut Batch<'_>,
    head: &Head,
    payload: [&[u8]; 2],
) {
    let (id, index) = (shard.id, head.index);
    assert!(index > shard.start_index, "shard {id}: entry {index} lies before the log's start");
    assert!(index <= shard.last_index() + 1, "shard {id}: entry {index} leaves a gap");
    while shard.last_index() >= index {
        if let Some(slot) = shard.slots.pop_back() {
            segments.remove(&slot);
        }
    }
    let previous = shard.slots.back().map_or(shard.start_chain, |slot| slot.chain);
    let offset = batch.base + batch.buffer.len() as u64;
    let chain = batch.put(head, payload, Some(previous));
    let length = (batch.base + batch.buffer.len() as u64 - offset) as u32;
    let slot = Slot { term: head.term, chain, segment: batch.segment, offset, length };
    shard.slots.push_back(slot);
    segments.add(&slot);
    shard.touched = true;
    shard.settle_floor();
}

fn stage_start(
    shard: &mut Shard,
    segments: &mut Segments,
    batch: &mut Batch<'_>,
    index: u64,
    term: u64,
) {
    let id = shard.id;
    let back = index < shard.start_index;
    if back {
        // The snapshot that the log continued is lost and an older one took its place: all that was durable is owed.
        shard.floor = shard.floor.max(shard.last_index());
    }
    // With the entry in hand its followers still continue it; otherwise another history begins here.
    let kept = shard.at(index).filter(|(_, found)| *found == term);
    let keep_from = if kept.is_some() { index } else { u64::MAX };
    while shard.start_index < keep_from
        && let Some(slot) = shard.slots.pop_front()
    {
        segments.remove(&slot);
        shard.start_index += 1;
    }
    shard.start_index = index;
    shard.start_term = term;
    shard.start_chain = kept.map_or(0, |(chain, _)| chain);
    let head = Head {
        kind: Kind::Start,
        tag: if back { TAG_BACK } else { u8::from(kept.is_some()) },
        shard: id,
        term,
        index,
        chain: shard.start_chain,
        batch: batch.number,
    };
    batch.put(&head, [&[], &[]], None);
    shard.touched = true;
    shard.settle_floor();
}
