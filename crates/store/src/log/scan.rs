//! Scan: from a segment's bytes to runs of valid frames. Total: any bytes give some answer.
//!
//! Between two runs lie bytes that are no valid frame at their place. Whether that is a torn tail or damage is
//! not decided here.

use super::error::OpenError;
use super::frame::{
    FORMAT, Frame, Kind, Place, SEGMENT_HEADER_BYTES, SegmentHeader, decode, decode_trusted,
};
use crate::identity::Identity;
use crate::planted::{self, Bug};
use bytes::Bytes;
use std::ops::Range;

/// A segment as found on disk.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) bytes: Bytes,
    /// `None` if damaged or torn.
    pub(super) header: Option<SegmentHeader>,
    /// Valid frames lie here, back to back.
    pub(super) runs: Vec<Range<usize>>,
    /// Only zeros follow the last run.
    pub(super) clean_end: bool,
}

/// Scans one segment; refuses one that belongs elsewhere.
pub(super) fn scan(
    number: u64,
    name: String,
    bytes: Bytes,
    identity: &Identity,
) -> Result<Scanned, OpenError> {
    let header = SegmentHeader::decode(&bytes);
    if let Some(header) = &header {
        check_owner(header, &name, number, identity)?;
    }
    let place = Place::new(identity, number);
    let mut runs = Vec::new();
    let mut position = SEGMENT_HEADER_BYTES.min(bytes.len());
    let clean_end = loop {
        let from = position;
        while let Some(frame) = frame_at(&bytes, position, &place) {
            position += frame.length;
        }
        if position > from {
            runs.push(from..position);
        }
        // Zeros to the end: nothing was ever written here (or nothing of it is left).
        if bytes[position..].iter().all(|byte| *byte == 0) {
            break true;
        }
        let next = (position + 8..bytes.len().saturating_sub(8))
            .step_by(8)
            .find(|at| decode(&bytes, *at, 0, &place).is_some());
        match next {
            Some(at) => position = at,
            None => break false,
        }
    };
    Ok(Scanned {
        number,
        name,
        bytes,
        header,
        runs,
        clean_end,
    })
}

fn frame_at(bytes: &[u8], at: usize, place: &Place) -> Option<Frame> {
    if planted::active(Bug::TornTailKept) {
        return decode_trusted(bytes, at);
    }
    decode(bytes, at, 0, place)
}

fn check_owner(
    header: &SegmentHeader,
    name: &str,
    number: u64,
    identity: &Identity,
) -> Result<(), OpenError> {
    let file = name.to_owned();
    if header.format != FORMAT {
        return Err(OpenError::Format {
            file,
            found: header.format,
            known: FORMAT,
        });
    }
    let facts = [
        ("cluster", header.cluster, identity.cluster),
        ("node", header.node, identity.node),
        ("incarnation", header.incarnation, identity.incarnation),
    ];
    for (what, found, expected) in facts {
        if found != expected {
            return Err(OpenError::Foreign {
                file,
                what,
                found,
                expected,
            });
        }
    }
    if header.number != number {
        return Err(OpenError::Misplaced {
            file,
            found: header.number,
        });
    }
    Ok(())
}

impl Scanned {
    /// The valid frames of a run with their offsets.
    pub(super) fn frames(&self, run: &Range<usize>) -> impl Iterator<Item = (usize, Frame)> + '_ {
        let mut position = run.start;
        let end = run.end;
        std::iter::from_fn(move || {
            if position >= end {
                return None;
            }
            let at = position;
            let frame = decode_trusted(&self.bytes, at)?;
            position += frame.length;
            Some((at, frame))
        })
    }

    /// All valid frames.
    pub(super) fn all_frames(&self) -> impl Iterator<Item = (usize, Frame)> + '_ {
        self.runs.iter().flat_map(|run| self.frames(run))
    }

    /// The highest batch that this segment calls durable.
    pub(super) fn proven(&self) -> u64 {
        let frames = self.all_frames().map(|(_, frame)| match frame.head.kind {
            Kind::Batch => frame.head.chain,
            Kind::Mark => frame.head.index,
            _ => 0,
        });
        let header = self
            .header
            .map_or(0, |header| header.first_batch.saturating_sub(1));
        frames.fold(header, u64::max)
    }

    /// The lowest batch that has a frame here.
    pub(super) fn first_batch(&self) -> Option<u64> {
        self.all_frames().map(|(_, frame)| frame.head.batch).min()
    }

    /// The highest bound below which segments are not needed, stated in a batch up to `proven`.
    pub(super) fn trim(&self, proven: u64) -> Option<(u64, bool)> {
        let trims = self
            .all_frames()
            .filter(|(_, frame)| frame.head.kind == Kind::Trim && frame.head.batch <= proven);
        trims
            .map(|(_, frame)| (frame.head.index, frame.head.tag == 1))
            .max_by_key(|trim| trim.0)
    }

    /// Bytes from an offset to the last one that is not zero.
    pub(super) fn written_after(&self, offset: usize) -> u64 {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        rest.iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last as u64 + 1)
    }

    /// End of the last valid frame.
    pub(super) fn end(&self) -> usize {
        self.runs.last().map_or(SEGMENT_HEADER_BYTES, |run| run.end)
    }
}
