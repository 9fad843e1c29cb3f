//! The second copy of every shard's position, vote first: `votes.0`, `votes.1` and `votes.mark`.
//!
//! A table holds, for every shard, term, vote and the end of its log at the moment a batch became durable.
//! `votes.0` and `votes.1` are written in turn and synced whenever a term or vote changed, after the log itself
//! was synced and before anything is acknowledged: one corruption can never take both copies of a vote. `votes.mark`
//! is written after every sync and never synced: it costs a few microseconds, survives a killed process, and
//! shows when the log's tail was cut or replaced behind our back.
//!
//! Format, little endian: magic `IKADAVOT`, format u32, count u32, cluster u64, node u64, incarnation u64, generation u64,
//! batch u64, then the proofs (48 bytes each), then crc32c u32 of all that.

use super::error::OpenError;
use super::frame::{PROOF_BYTES, Proof};
use crate::codec::Reader;
use crate::disk::{Disk, DiskFile};
use crate::identity::Identity;
use std::io;

const MAGIC: &[u8; 8] = b"IKADAVOT";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 56;
const SLOTS: [&str; 2] = ["votes.0", "votes.1"];
const MARK: &str = "votes.mark";

/// A table as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) generation: u64,
    pub(super) batch: u64,
    pub(super) proofs: Vec<Proof>,
}

/// What the files said at open.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Valid tables, oldest batch first.
    pub(super) tables: Vec<Table>,
    /// Whether the newest synced table is certain to be among them.
    pub(super) trusted: bool,
    /// Both synced tables were there and neither can be read.
    pub(super) gone: bool,
    /// Highest generation seen.
    pub(super) generation: u64,
}

/// The open files.
#[derive(Debug)]
pub(super) struct VoteFiles<F> {
    slots: [F; 2],
    mark: F,
    generation: u64,
    buffer: Vec<u8>,
}

enum Found {
    Absent,
    Bad,
    Table(Table),
}

/// Reads all three files.
pub(super) fn load<D: Disk>(disk: &D, identity: &Identity) -> Result<Votes, OpenError> {
    let first = load_one(disk, SLOTS[0], identity)?;
    let second = load_one(disk, SLOTS[1], identity)?;
    let trusted = match (&first, &second) {
        (Found::Table(_), Found::Table(_)) | (Found::Absent, Found::Absent) => true,
        // Only the very first write finds its sibling missing.
        (Found::Absent, Found::Table(only)) => only.generation == 1,
        _ => false,
    };
    let gone = matches!((&first, &second), (Found::Bad, Found::Bad));
    let mut votes = Votes { trusted, gone, ..Votes::default() };
    let mark = load_one(disk, MARK, identity)?;
    for found in [first, second, mark] {
        if let Found::Table(table) = found {
            votes.generation = votes.generation.max(table.generation);
            votes.tables.push(table);
        }
    }
    votes.tables.sort_by_key(|table| table.batch);
    Ok(votes)
}

fn load_one<D: Disk>(disk: &D, name: &str, identity: &Identity) -> Result<Found, OpenError> {
    let failed = |source| OpenError::Io { doing: "reading the votes file", source };
    if !disk.exists(name).map_err(failed)? {
        return Ok(Found::Absent);
    }
    let bytes = disk.read(name).map_err(failed)?;
    let Some((owner, table)) = decode(&bytes) else {
        return Ok(if bytes.iter().all(|byte| *byte == 0) { Found::Absent } else { Found::Bad });
    };
    let ours = [identity.cluster, identity.node, identity.incarnation];
    for (what, (found, expected)) in
        ["cluster", "node", "incarnation"].into_iter().zip(owner.into_iter().zip(ours))
    {
        if found != expected {
            return Err(OpenError::Foreign { file: name.to_owned(), what, found, expected });
        }
    }
    Ok(Found::Table(table))
}

fn decode(bytes: &[u8]) -> Option<([u64; 3], Table)> {
    let mut reader = Reader::new(bytes);
    if reader.bytes(8)? != MAGIC || reader.u32()? != FORMAT {
        return None;
    }
    let count = reader.u32()? as usize;
    let end = count.checked_mul(PROOF_BYTES)?.checked_add(HEADER_BYTES)?;
    // Tables only grow, so what follows an intact one is the rest of nothing.
    if *bytes.get(end..end.checked_add(4)?)? != crc32c::crc32c(bytes.get(..end)?).to_le_bytes() {
        return None;
    }
    let owner = [reader.u64()?, reader.u64()?, reader.u64()?];
    let (generation, batch) = (reader.u64()?, reader.u64()?);
    let proofs = Proof::decode_all(reader.bytes(end - HEADER_BYTES)?);
    (proofs.len() == count).then_some((owner, Table { generation, batch, proofs }))
}

impl<F: DiskFile> VoteFiles<F> {
    /// Opens or creates the files; the next table gets the generation after `generation`.
    pub(super) fn open<D: Disk<File = F>>(disk: &D, generation: u64) -> io::Result<VoteFiles<F>> {
        let open = |name: &str| {
            if disk.exists(name)? { disk.open(name) } else { disk.create(name) }
        };
        let slots = [open(SLOTS[0])?, open(SLOTS[1])?];
        let mark = open(MARK)?;
        disk.sync_dir("")?;
        // The generation's parity names the slot, so that the newest table is never overwritten.
        Ok(VoteFiles { slots, mark, generation, buffer: Vec::new() })
    }

    fn encode<'a>(
        &mut self,
        identity: &Identity,
        batch: u64,
        proofs: impl Iterator<Item = &'a Proof>,
    ) {
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&FORMAT.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        let owner = [identity.cluster, identity.node, identity.incarnation];
        for number in owner.into_iter().chain([self.generation, batch]) {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        let mut count = 0u32;
        for proof in proofs {
            proof.encode(buffer);
            count += 1;
        }
        buffer[12..16].copy_from_slice(&count.to_le_bytes());
        let crc = crc32c::crc32c(buffer);
        buffer.extend_from_slice(&crc.to_le_bytes());
    }

    /// Writes and syncs the next table.
    pub(super) fn write(
        &mut self,
        identity: &Identity,
        batch: u64,
        proofs: &[Proof],
    ) -> io::Result<()> {
        self.generation += 1;
        self.encode(identity, batch, proofs.iter());
        let slot = &mut self.slots[(self.generation % 2) as usize];
        slot.write_at(0, &self.buffer)?;
        slot.sync()
    }

    /// Writes the un-synced table.
    pub(super) fn write_mark(
        &mut self,
        identity: &Identity,
        batch: u64,
        proofs: &[Proof],
    ) -> io::Result<()> {
        self.encode(identity, batch, proofs.iter());
        self.mark.write_at(0, &self.buffer)
    }
}
