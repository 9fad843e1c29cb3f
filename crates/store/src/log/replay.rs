//! Replay: from scanned segments to one window per shard, and the verdict on every byte that is not a frame.
//!
//! Batches are taken in order. A break (bytes that are no frame, a missing batch, an incomplete batch) in a batch that
//! nothing proves durable is the torn tail: replay stops before that batch. Any other break is damage, except one
//! that cost no more than a mark: then the next batch carries the next number.

use super::frame::{BaseTail, Frame, HEADER_BYTES, Kind, Proof, SEGMENT_HEADER_BYTES, TAG_BACK};
use super::scan::Scanned;
use super::votes::{Table, Votes};
use super::window::Window;
use crate::planted::{self, Bug};
use std::collections::BTreeMap;

/// What replay found.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) windows: BTreeMap<u16, Window>,
    pub(super) last_batch: u64,
    /// (position of the segment, offset): the log ends here, the rest was never acknowledged.
    pub(super) cut: Option<(usize, usize)>,
    /// Something durable does not read back: the files must not be used again.
    pub(super) damaged: bool,
    pub(super) findings: Vec<String>,
    /// Nothing is broken, the log merely ends before what is proven: it is an older copy.
    pub(super) rolled_back: bool,
}

struct Replay<'a> {
    outcome: Outcome,
    proven: u64,
    /// Tables still to come, by the batch after which they speak.
    tables: std::collections::VecDeque<&'a Table>,
    /// Where the current batch begins and must end.
    batch_start: usize,
    batch_end: usize,
    /// A break between batches that may have cost only a mark: bytes of it.
    pending: Option<u64>,
}

/// Replays segments in order. `proven` is the highest batch that anything calls durable.
pub(super) fn replay(segments: &[Scanned], votes: &Votes, proven: u64) -> Outcome {
    let mut replay = Replay {
        outcome: Outcome::default(),
        proven,
        tables: std::collections::VecDeque::new(),
        batch_start: 0,
        batch_end: 0,
        pending: None,
    };
    replay.admit_tables(segments, votes);
    for (position, segment) in segments.iter().enumerate() {
        if let Some(offset) = replay.segment(position == 0, segment) {
            replay.outcome.cut = Some((position, offset));
            break;
        }
    }
    if let Some(bytes) = replay.pending.take()
        && replay.outcome.cut.is_none()
    {
        replay.damage("the end of the log is damaged", bytes);
    }
    if planted::active(Bug::MiddleCut) {
        return replay.outcome;
    }
    // Judged before the tables speak of batches that are not there.
    replay.outcome.rolled_back = !replay.outcome.damaged && replay.outcome.last_batch < proven;
    replay.speak(u64::MAX);
    replay.outcome
}

impl<'a> Replay<'a> {
    /// Tables from before the first checkpoint know only older positions: their votes count, nothing else.
    fn admit_tables(&mut self, segments: &[Scanned], votes: &'a Votes) {
        let first = segments.first();
        let origin = first.and_then(|segment| {
            segment.header.map(|header| header.first_batch).or(segment.said.first_batch)
        });
        for table in &votes.tables {
            if origin.is_some_and(|origin| table.batch >= origin) {
                self.tables.push_back(table);
                continue;
            }
            for proof in &table.proofs {
                let window = self.window(proof.shard);
                window.raise(proof.term, proof.vote);
            }
        }
    }

    /// Replays one segment; gives the offset of the cut if the log ends inside.
    fn segment(&mut self, first: bool, segment: &Scanned) -> Option<usize> {
        self.batch_end = 0;
        let next = self.outcome.last_batch.saturating_add(1);
        match segment.header {
            Some(header) => {
                if !first && header.first_batch != next {
                    let found = header.first_batch;
                    let text = format!("{} begins with batch {found}, not {next}", segment.name);
                    self.damage(&text, self.pending.unwrap_or(0));
                } else if self.pending.is_some() {
                    self.only_a_mark(segment);
                }
                self.pending = None;
                self.outcome.last_batch = header.first_batch.saturating_sub(1);
            }
            None if next > self.proven && !first => return Some(0),
            None => self.damage(&format!("{} has a damaged header", segment.name), 0),
        }
        let mut position = SEGMENT_HEADER_BYTES;
        for run in &segment.runs {
            if run.start != position {
                let cut = self.gap(segment, position, run.start);
                if cut.is_some() {
                    return cut;
                }
            }
            for (at, frame) in segment.frames(run) {
                if frame.head.kind == Kind::Batch {
                    let cut = self.batch(segment, at, &frame, run.end);
                    if cut.is_some() {
                        return cut;
                    }
                    continue;
                }
                self.follow(segment, &frame);
                self.apply(segment, at, &frame);
            }
            position = run.end;
        }
        if position < self.batch_end || !segment.clean_end {
            return self.gap(segment, position, segment.bytes.len());
        }
        None
    }

    /// Bytes that are no frame.
    fn gap(&mut self, segment: &Scanned, from: usize, to: usize) -> Option<usize> {
        let bytes = (to - from) as u64;
        let inside_batch = from < self.batch_end;
        let text = format!("{} is damaged from byte {from} to {to}", segment.name);
        if planted::active(Bug::MiddleCut) {
            return Some(if inside_batch { self.batch_start } else { from });
        }
        if inside_batch {
            self.batch_end = 0;
            self.damage(&text, bytes);
            return None;
        }
        if self.outcome.last_batch.saturating_add(1) > self.proven {
            return Some(from);
        }
        self.pending = Some(self.pending.unwrap_or(0) + bytes);
        self.outcome.findings.push(text);
        None
    }

    /// The head of a batch; gives its offset if the batch is incomplete and was never acknowledged.
    fn batch(
        &mut self,
        segment: &Scanned,
        at: usize,
        frame: &Frame,
        run_end: usize,
    ) -> Option<usize> {
        let (number, next) = (frame.head.batch, self.outcome.last_batch.saturating_add(1));
        let end = at.saturating_add(usize::try_from(frame.head.index).unwrap_or(usize::MAX));
        if end > run_end && number > self.proven {
            return Some(at);
        }
        if number != next || at < self.batch_end {
            let text = format!("{}: batch {number} follows batch {}", segment.name, next - 1);
            self.damage(&text, self.pending.unwrap_or(0));
        } else if self.pending.is_some() {
            self.only_a_mark(segment);
        }
        self.pending = None;
        self.speak(number.saturating_sub(1));
        self.outcome.last_batch = number;
        (self.batch_start, self.batch_end) = (at, end);
        None
    }

    /// A frame other than a batch head: after a gap it may belong to a batch whose head is lost.
    fn follow(&mut self, segment: &Scanned, frame: &Frame) {
        let lost_head =
            frame.head.kind != Kind::Mark && frame.head.batch != self.outcome.last_batch;
        let lost_batches =
            frame.head.kind == Kind::Mark && frame.head.index > self.outcome.last_batch;
        if lost_head || lost_batches {
            let text = format!("{}: the head of batch {} is lost", segment.name, frame.head.batch);
            let bytes = self.pending.take().unwrap_or(0);
            self.damage(&text, bytes);
            self.outcome.last_batch = self.outcome.last_batch.max(frame.head.batch);
        } else if let Some(bytes) = self.pending.take() {
            self.damage(&format!("{}: frames are lost", segment.name), bytes);
        }
    }

    fn window(&mut self, shard: u16) -> &mut Window {
        self.outcome.windows.entry(shard).or_default()
    }

    fn only_a_mark(&mut self, segment: &Scanned) {
        self.outcome.damaged = true;
        self.outcome.findings.push(format!("{}: only a mark was lost", segment.name));
    }

    fn damage(&mut self, text: &str, bytes: u64) {
        self.outcome.damaged = true;
        self.outcome.findings.push(text.to_owned());
        for window in self.outcome.windows.values_mut() {
            window.hole(bytes / HEADER_BYTES as u64);
        }
    }

    /// Lets the tables speak that describe batches up to this one.
    fn speak(&mut self, upto_batch: u64) {
        while let Some(table) = self.tables.front()
            && table.batch <= upto_batch
        {
            let proofs = &table.proofs;
            self.tables.pop_front();
            for proof in proofs {
                self.prove(proof, "the votes file");
            }
        }
    }

    fn prove(&mut self, proof: &Proof, source: &str) {
        let window = self.window(proof.shard);
        if !window.prove(proof) {
            let (shard, index) = (proof.shard, proof.last_index);
            let text =
                format!("{source} says shard {shard} ends at entry {index}: entries are lost");
            self.outcome.damaged = true;
            self.outcome.findings.push(text);
        }
    }

    fn apply(&mut self, segment: &Scanned, at: usize, frame: &Frame) {
        let head = frame.head;
        let payload =
            || segment.bytes.slice(frame.payload_at..frame.payload_at + frame.payload_length);
        match head.kind {
            Kind::Batch | Kind::Trim => {}
            Kind::Mark => {
                for proof in Proof::decode_all(&payload()) {
                    self.prove(&proof, &segment.name);
                }
            }
            Kind::Entry => {
                self.window(head.shard).entry(*frame, payload(), segment.number, at as u64)
            }
            Kind::Copy => {
                if !self.window(head.shard).copy(*frame, payload(), segment.number, at as u64) {
                    let text = format!("{}: copy of entry {} differs", segment.name, head.index);
                    self.outcome.damaged = true;
                    self.outcome.findings.push(text);
                }
            }
            Kind::Hard => self.window(head.shard).hard(head.term, head.chain, head.index),
            Kind::Start if head.tag == TAG_BACK => {
                self.window(head.shard).start_back(head.index, head.term)
            }
            Kind::Start => {
                self.window(head.shard).start(head.index, head.term, head.chain, head.tag == 1)
            }
            Kind::Base => self.base(segment, frame, &payload()),
        }
    }

    fn base(&mut self, segment: &Scanned, frame: &Frame, payload: &[u8]) {
        let Some(tail) = BaseTail::decode(payload) else {
            return;
        };
        let head = frame.head;
        let window = self.window(head.shard);
        let first_word = !window.is_seen();
        if first_word || window.start_index() < head.index {
            window.start(head.index, head.term, head.chain, true);
        }
        if first_word {
            window.set_end(tail.proof.last_index);
        }
        if !window.set_base(&tail.proof, tail.commit, tail.floor) {
            let text =
                format!("{} and its checkpoint disagree on shard {}", segment.name, head.shard);
            self.outcome.damaged = true;
            self.outcome.findings.push(text);
        }
    }
}
