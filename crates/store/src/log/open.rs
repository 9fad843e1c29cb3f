//! Open: reads everything, judges it, and only then touches the disk.
//!
//! Every refusal leaves the files as they were. A clean or torn log keeps its segments; a damaged one is written
//! anew and the old files move to `quarantine/`. Each open begins a fresh segment, so nothing is ever
//! written behind bytes of an earlier life. Every step may be interrupted: the next open starts over from
//! the same facts.

use super::error::OpenError;
use super::frame::{Head, Kind, Place};
use super::record::Recovery;
use super::replay::{Outcome, replay};
use super::scan::{Scanned, scan};
use super::shard::{Segment, Segments, Shards, Slot};
use super::spare::remove_spare;
use super::sync::create_file;
use super::votes::{self, VoteFiles, Votes};
use super::window::Held;
use super::{FOLDER, Fault, Log, LogOptions, LogStats, segment_name};
use crate::disk::{Disk, DiskFile};
use crate::identity::Identity;
use crate::planted::{self, Bug};
use bytes::Bytes;
use std::io;

const QUARANTINE: &str = "quarantine";
/// Survivors of damage are written in batches of about this size.
const COPY_BATCH_BYTES: usize = 1 << 20;
/// Batches and generations are counted from 1: a million a second do not get here.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// What lies in the folder, read and scanned.
struct Found {
    /// Segments that count, oldest first.
    segments: Vec<Scanned>,
    /// Segments that a durable record calls unneeded.
    leftover: Vec<u64>,
    /// They were damaged when that record was written.
    leftover_damaged: bool,
    /// A segment whose creation was interrupted.
    void: Vec<u64>,
    votes: Votes,
    proven: u64,
    low: u64,
    next_number: u64,
}

fn doing(doing: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::Io { doing, source }
}

pub(super) fn open<D: Disk>(
    disk: D,
    identity: &Identity,
    options: LogOptions,
) -> Result<(Log<D>, Recovery), OpenError> {
    disk.make_dir(FOLDER).map_err(doing("making the log's folder"))?;
    disk.make_dir(QUARANTINE).map_err(doing("making the quarantine folder"))?;
    let found = find(&disk, identity)?;
    let mut outcome = replay(&found.segments, &found.votes, found.proven);
    let batch = outcome.last_batch.max(found.proven);
    for (what, found) in [("batch", batch), ("generation of votes", found.votes.generation)] {
        if found > NUMBER_MAX {
            return Err(OpenError::Number { what, found });
        }
    }
    if outcome.rolled_back {
        let (found, proven) = (outcome.last_batch, found.proven);
        return Err(OpenError::RolledBack { found, proven });
    }
    if let Some(shard) = lost_vote(&found.votes, &outcome) {
        return Err(OpenError::VoteLost { shard });
    }
    let mut recovery = Recovery::default();
    std::mem::swap(&mut recovery.findings, &mut outcome.findings);
    // Its room serves the fresh segment, should the disk be full.
    remove_spare(&disk).map_err(doing("removing the spare segment"))?;
    cut_tail(&disk, &found, &outcome, &mut recovery)?;
    let (mut log, moved) = build(disk, identity, options, &found, outcome, &mut recovery)?;
    clear_old(&log.disk, &found, &moved, &mut recovery)?;
    log.make_spare()?;
    Ok((log, recovery))
}

/// A shard whose newest vote may be in neither copy.
fn lost_vote(votes: &Votes, outcome: &Outcome) -> Option<u16> {
    // A crash tears the log's tail or one votes file, never both votes files: then the tail is no tail.
    let tail_doubtful = votes.gone && outcome.cut.is_some();
    let doubtful = |unsure: bool| tail_doubtful || (unsure && !votes.trusted);
    outcome.windows.iter().find(|(_, window)| doubtful(window.hard_unsure)).map(|(id, _)| *id)
}

fn find<D: Disk>(disk: &D, identity: &Identity) -> Result<Found, OpenError> {
    let votes = votes::load(disk, identity)?;
    let mut segments = Vec::new();
    for name in disk.list(FOLDER).map_err(doing("listing the log's folder"))? {
        let Some(number) = name.strip_suffix(".log").and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        let name = segment_name(number);
        let bytes = disk.read(&name).map_err(doing("reading a segment"))?;
        segments.push(scan(number, name, Bytes::from(bytes), identity)?);
    }
    let next_number = segments.last().map_or(1, |segment| segment.number + 1);
    let tables = votes.tables.iter().map(|table| table.batch);
    let proven =
        segments.iter().map(|segment| segment.said.proven).chain(tables).max().unwrap_or(0);
    let trims = segments.iter().filter_map(|segment| segment.said.trim(proven));
    let (low, leftover_damaged) = trims.max_by_key(|trim| trim.0).unwrap_or((1, false));
    let old = segments.iter().filter(|segment| segment.number < low);
    let leftover = old.map(|segment| segment.number).collect();
    segments.retain(|segment| segment.number >= low);
    let mut void = Vec::new();
    while let Some(last) = segments.last()
        && last.header.is_none()
        && last.said.first_batch.is_none_or(|batch| batch > proven)
        // A lone segment that was ever finished has left a table beside it.
        && (segments.len() > 1 || proven == 0)
    {
        void.push(last.number);
        segments.pop();
    }
    Ok(Found { segments, leftover, leftover_damaged, void, votes, proven, low, next_number })
}

/// Cuts what was never acknowledged and makes the rest durable, before a new segment can call it so: what a
/// killed process wrote may still be in memory only.
fn cut_tail<D: Disk>(
    disk: &D,
    found: &Found,
    outcome: &Outcome,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let failed = doing("settling the last segment");
    let mut gone = found.void.clone();
    if let Some((position, offset)) = outcome.cut {
        recovery.torn_bytes = found.segments[position].written_after(offset);
        let after = if offset == 0 { position } else { position + 1 };
        gone.extend(found.segments[after..].iter().map(|segment| segment.number));
    }
    if let Some(last) = kept(found, outcome.cut).last() {
        let mut file = disk.open(&last.name).map_err(&failed)?;
        let end = match outcome.cut {
            Some((_, offset)) if offset > 0 => Some(offset),
            // The room that was never used goes back, or every restart would cost a whole segment.
            _ => last.clean_end.then(|| last.end()),
        };
        if let Some(end) = end {
            file.set_len(end as u64).map_err(&failed)?;
        }
        file.sync().map_err(&failed)?;
    }
    for number in &gone {
        disk.remove(&segment_name(*number)).map_err(doing("removing an unfinished segment"))?;
    }
    if !gone.is_empty() {
        disk.sync_dir(FOLDER).map_err(doing("removing an unfinished segment"))?;
    }
    Ok(())
}

/// Builds the open log on a fresh segment. Gives the segments that were replaced because of damage.
fn build<D: Disk>(
    disk: D,
    identity: &Identity,
    options: LogOptions,
    found: &Found,
    outcome: Outcome,
    recovery: &mut Recovery,
) -> Result<(Log<D>, Vec<u64>), OpenError> {
    let number = found.next_number;
    let mut last_batch = outcome.last_batch.max(found.proven);
    if planted::active(Bug::MiddleCut) {
        last_batch = outcome.last_batch;
    }
    let file = create_file(&disk, &segment_name(number), options.segment_bytes)
        .map_err(doing("creating a segment"))?;
    let votes =
        VoteFiles::open(&disk, found.votes.generation).map_err(doing("opening the votes files"))?;
    let mut log = Log {
        place: Place::new(identity, number),
        identity: identity.clone(),
        file,
        disk,
        options,
        tail: 0,
        checkpoint_end: 0,
        segments: Segments::default(),
        shards: Shards::default(),
        batch: last_batch,
        durable: last_batch,
        proven: last_batch,
        votes_stale: false,
        votes,
        low: found.low,
        low_batch: 0,
        closed: false,
        spare: None,
        buffer: Vec::new(),
        proofs: Vec::new(),
        stats: LogStats::default(),
    };
    let mut survivors = Vec::new();
    // Some losses show only when the chains are walked.
    let mut damaged = outcome.damaged;
    for (id, window) in outcome.windows {
        let settled = window.settle(id);
        damaged |= settled.broken;
        survivors.push((id, settled.held));
        recovery.shards.insert(id, settled.recovered);
        recovery.noted.insert(id, settled.noted);
        *log.shards.get(id) = settled.shard;
    }
    let kept = kept(found, outcome.cut);
    if damaged {
        log.start_segment(number)?;
        log.rewrite_survivors(&survivors, number)?;
    } else {
        log.adopt(kept, outcome.cut);
        log.start_segment(number)?;
    }
    // Twice, so that both files are whole and new.
    log.write_votes_now()?;
    log.write_votes_now()?;
    let replaced =
        if damaged { kept.iter().map(|segment| segment.number).collect() } else { Vec::new() };
    Ok((log, replaced))
}

/// The segments that hold something of the log.
fn kept(found: &Found, cut: Option<(usize, usize)>) -> &[Scanned] {
    match cut {
        None => &found.segments,
        Some((position, 0)) => &found.segments[..position],
        Some((position, _)) => &found.segments[..=position],
    }
}

/// Moves damaged segments aside and finishes interrupted deletions.
fn clear_old<D: Disk>(
    disk: &D,
    found: &Found,
    replaced: &[u64],
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let failed = doing("moving a segment to quarantine");
    let mut damaged = replaced.to_vec();
    if found.leftover_damaged {
        damaged.extend(&found.leftover);
    } else {
        for number in &found.leftover {
            disk.remove(&segment_name(*number)).map_err(doing("deleting a segment"))?;
        }
    }
    for number in &damaged {
        let plain = format!("{QUARANTINE}/wal-{number:020}.log");
        let mut target = plain.clone();
        let mut copy = 1;
        while disk.exists(&target).map_err(&failed)? {
            target = format!("{plain}.{copy}");
            copy += 1;
        }
        disk.rename(&segment_name(*number), &target).map_err(&failed)?;
        recovery.quarantined.push(target);
    }
    if !damaged.is_empty() {
        disk.sync_dir(QUARANTINE).map_err(&failed)?;
        disk.sync_dir(FOLDER).map_err(&failed)?;
    }
    Ok(())
}

impl<D: Disk> Log<D> {
    /// Takes over segments that need no repair.
    fn adopt(&mut self, segments: &[Scanned], cut: Option<(usize, usize)>) {
        for (position, segment) in segments.iter().enumerate() {
            let end = match cut {
                Some((cut_position, offset)) if cut_position == position => offset,
                _ => segment.end(),
            };
            let (number, bytes) = (segment.number, end as u64);
            self.segments.list.push_back(Segment { number, bytes, live_entries: 0, live_bytes: 0 });
        }
        for shard in self.shards.iter() {
            for slot in &shard.slots {
                self.segments.add(slot);
            }
        }
    }

    /// Writes every surviving entry into fresh segments and records, provably, that only those count.
    fn rewrite_survivors(
        &mut self,
        survivors: &[(u16, Vec<Held>)],
        first_number: u64,
    ) -> Result<(), Fault> {
        for (shard, held) in survivors {
            let mut position = 0;
            while position < held.len() {
                position = self.rewrite_some(*shard, held, position)?;
            }
        }
        self.sync()?;
        self.write_trim(first_number, true)?;
        self.sync()?;
        // The old files may go only once the next open is certain to know that they do not count.
        self.sync_marks()
    }

    /// Writes one batch of survivors; gives the position of the next one.
    fn rewrite_some(&mut self, shard: u16, held: &[Held], from: usize) -> Result<usize, Fault> {
        let mut to = from;
        let mut bytes = super::frame::HEADER_BYTES;
        while to < held.len() && (to == from || bytes < COPY_BATCH_BYTES) {
            bytes += held[to].frame.length;
            to += 1;
        }
        self.make_room(bytes as u64)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut batch = self.batch(&mut buffer);
        batch.begin((to - from) as u64, bytes as u64, self.durable);
        for (position, held) in held.iter().enumerate().take(to).skip(from) {
            let head = Head { kind: Kind::Copy, batch: batch.number, ..held.frame.head };
            let offset = batch.base + batch.buffer.len() as u64;
            let cut = held.payload.len() - held.frame.context_length;
            batch.put(&head, [&held.payload[..cut], &held.payload[cut..]], None);
            let slot = &mut self.shards.get(shard).slots[position];
            *slot = Slot { segment: batch.segment, offset, ..*slot };
            let slot = *slot;
            self.segments.add(&slot);
        }
        self.write_batch(buffer)?;
        Ok(to)
    }
}
