//! Purge: forgets what snapshots cover, so that the log's size follows the live entries.
//!
//! A segment goes when no live entry lies in it and none older is needed. A shard that writes rarely would
//! pin the oldest segment for ever; so when the log holds more than twice its live bytes plus two
//! segments, live entries of the oldest segment are copied forward, a bounded number of bytes per call.

use super::append::Batch;
use super::frame::{Head, Kind, Place, decode};
use super::sync::trim_head;
use super::{Fault, Log, Record, segment_name};
use crate::disk::{Disk, DiskFile};
use crate::planted::{self, Bug};

/// A live entry of an old segment.
struct Old {
    shard: u16,
    position: usize,
    index: u64,
    offset: u64,
    length: u32,
}

impl<D: Disk> Log<D> {
    /// A durable snapshot covers the shard's log up to this point: forgets it. Files go during a later sync.
    pub fn purge(&mut self, shard: u16, upto_index: u64, term: u64) -> Result<(), Fault> {
        self.check_open()?;
        let held = self.shards.get(shard);
        if upto_index > held.start_index {
            let mut start = (upto_index, term);
            if planted::active(Bug::PurgeOneTooMany)
                && let Some((_, term)) = held.at(upto_index + 1)
            {
                start = (upto_index + 1, term);
            }
            self.append(&[Record::Start { shard, index: start.0, term: start.1 }])?;
        }
        // Room is made in any case: a received snapshot restarts the log at its point before this call names it.
        // Several segments may have been filled since the last call: one segment per call would never catch up.
        let mut copied = 0;
        while copied < self.options.rewrite_bytes {
            let Some(bytes) = self.rewrite()? else { break };
            copied += bytes;
            self.trim()?;
        }
        self.trim()
    }

    /// Copies live entries of the oldest segment forward if the log is too large for what it holds; gives the bytes
    /// copied, or nothing when there was nothing to do.
    fn rewrite(&mut self) -> Result<Option<u64>, Fault> {
        // Segments already given up only wait for their files to be deleted.
        let kept = self.segments.list.iter().filter(|segment| segment.number >= self.low);
        let (bytes, live_bytes) =
            kept.fold((0, 0), |sum, segment| (sum.0 + segment.bytes, sum.1 + segment.live_bytes));
        if bytes <= 2 * live_bytes + 2 * self.options.segment_bytes {
            return Ok(None);
        }
        let Some(oldest) =
            self.segments.list.iter().find(|segment| segment.live_entries > 0).copied()
        else {
            return Ok(None);
        };
        if oldest.number == self.current() {
            return Ok(None);
        }
        let chosen = self.choose(oldest.number);
        let bytes: u64 = chosen.iter().map(|old| u64::from(old.length)).sum();
        let batch_bytes = bytes + super::frame::HEADER_BYTES as u64;
        self.make_room(batch_bytes)?;
        let name = segment_name(oldest.number);
        let file = self.disk.open(&name).map_err(|e| self.fail("reading a segment", e))?;
        let from = Place::new(&self.identity, oldest.number);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut batch = self.batch(&mut buffer);
        batch.begin(chosen.len() as u64, batch_bytes, self.durable);
        for old in &chosen {
            self.copy_forward(&file, &from, &mut batch, old, oldest.number)?;
        }
        self.stats.rewritten_records += chosen.len() as u64;
        self.write_batch(buffer)?;
        Ok(Some(bytes))
    }

    /// Live entries of a segment, up to the limit of one call, but at least one.
    fn choose(&self, segment: u64) -> Vec<Old> {
        let mut chosen = Vec::new();
        let mut bytes = 0;
        for shard in self.shards.iter() {
            for (position, slot) in shard.slots.iter().enumerate() {
                if slot.segment != segment {
                    continue;
                }
                bytes += u64::from(slot.length);
                if bytes > self.options.rewrite_bytes && !chosen.is_empty() {
                    return chosen;
                }
                let index = shard.start_index + 1 + position as u64;
                let (offset, length) = (slot.offset, slot.length);
                chosen.push(Old { shard: shard.id, position, index, offset, length });
            }
        }
        chosen
    }

    fn copy_forward(
        &mut self,
        file: &D::File,
        from: &Place,
        batch: &mut Batch<'_>,
        old: &Old,
        segment: u64,
    ) -> Result<(), Fault> {
        let mut bytes = vec![0; old.length as usize];
        let read = file.read_at(old.offset, &mut bytes);
        read.map_err(|error| self.fail("reading a segment", error))?;
        let slot = self.shards.get(old.shard).slots[old.position];
        let Some(frame) = decode(&bytes, 0, old.offset, from)
            .filter(|frame| frame.head.chain == slot.chain && frame.head.index == old.index)
        else {
            self.closed = true;
            return Err(Fault::Damaged { shard: old.shard, index: old.index, segment });
        };
        let payload = &bytes[frame.payload_at..frame.payload_at + frame.payload_length];
        let head = Head { kind: Kind::Copy, batch: batch.number, ..frame.head };
        let offset = batch.base + batch.buffer.len() as u64;
        let (data, context) = payload.split_at(frame.payload_length - frame.context_length);
        batch.put(&head, [data, context], None);
        let moved = super::shard::Slot { segment: batch.segment, offset, ..slot };
        self.segments.remove(&slot);
        self.segments.add(&moved);
        self.shards.get(old.shard).slots[old.position] = moved;
        Ok(())
    }

    /// Records that the segments before the first needed one may go.
    fn trim(&mut self) -> Result<(), Fault> {
        let current = self.current();
        let needed = self.segments.list.iter().find(|segment| segment.live_entries > 0);
        let low = needed.map_or(current, |segment| segment.number.min(current));
        if low <= self.low {
            return Ok(());
        }
        self.write_trim(low, false)
    }

    pub(super) fn write_trim(&mut self, low: u64, quarantine: bool) -> Result<(), Fault> {
        let bytes = 2 * super::frame::HEADER_BYTES as u64;
        self.make_room(bytes)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut batch = self.batch(&mut buffer);
        batch.begin(1, bytes, self.durable);
        let head = trim_head(low, quarantine, batch.number);
        batch.put(&head, [&[], &[]], None);
        self.write_batch(buffer)?;
        self.low = low;
        self.low_batch = self.batch;
        Ok(())
    }
}
