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
    pub(super) said: Said,
}

/// What the valid frames of a segment say about the log as a whole, gathered on the way.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The highest batch that is called durable.
    pub(super) proven: u64,
    /// The lowest batch that has a frame here.
    pub(super) first_batch: Option<u64>,
    /// (batch, bound, damaged): segments below the bound are not needed.
    trims: Vec<(u64, u64, bool)>,
}

impl Said {
    fn hear(&mut self, frame: &Frame) {
        let head = &frame.head;
        let first = self.first_batch.map_or(head.batch, |first| first.min(head.batch));
        self.first_batch = Some(first);
        match head.kind {
            Kind::Batch => self.proven = self.proven.max(head.chain),
            Kind::Mark => self.proven = self.proven.max(head.index),
            Kind::Trim => self.trims.push((head.batch, head.index, head.tag == 1)),
            _ => {}
        }
    }

    /// The highest bound stated in a batch up to `proven`, and whether damage was the reason.
    pub(super) fn trim(&self, proven: u64) -> Option<(u64, bool)> {
        let stated = self.trims.iter().filter(|trim| trim.0 <= proven);
        stated.map(|trim| (trim.1, trim.2)).max_by_key(|trim| trim.0)
    }
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
    let first_batch = header.map_or(0, |header| header.first_batch);
    let mut said = Said { proven: first_batch.saturating_sub(1), ..Said::default() };
    let mut position = SEGMENT_HEADER_BYTES.min(bytes.len());
    let clean_end = loop {
        let from = position;
        while let Some(frame) = frame_at(&bytes, position, &place) {
            said.hear(&frame);
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
    Ok(Scanned { number, name, bytes, header, runs, clean_end, said })
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
        return Err(OpenError::Format { file, found: header.format, known: FORMAT });
    }
    let facts = [
        ("cluster", header.cluster, identity.cluster),
        ("node", header.node, identity.node),
        ("incarnation", header.incarnation, identity.incarnation),
    ];
    for (what, found, expected) in facts {
        if found != expected {
            return Err(OpenError::Foreign { file, what, found, expected });
        }
    }
    if header.number != number {
        return Err(OpenError::Misplaced { file, found: header.number });
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

    /// Bytes from an offset to the last one that is not zero.
    pub(super) fn written_after(&self, offset: usize) -> u64 {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
    }

    /// End of the last valid frame.
    pub(super) fn end(&self) -> usize {
        self.runs.last().map_or(SEGMENT_HEADER_BYTES, |run| run.end)
    }
}
