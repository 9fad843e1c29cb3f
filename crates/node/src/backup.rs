//! The backup file: the state of every shard and the bytes of all objects as one stream, checked when it is read.
//!
//! Format 2, little endian: magic `IKADABAK` (8), format u32, shards u16, zero u16, cluster u64, then per shard: shard
//! u16, term u64, index u64, state hash u64, chunks (length u32 above 0, crc32c u32, bytes), a zero length. Then every
//! piece that an object refers to, in order of digests, each once: mark 1 (u8), digest (32), length u32, bytes; mark 2,
//! length u32 and a text if one cannot be had; mark 0 after the last. At the end `DONE` (4). A file that ends earlier is
//! refused, so that a broken download never looks like a backup. Format 1 is the same without pieces and their end.

use std::io::{self, Read};

use ikada_replica::state::{Digest, Frozen, Shard};
use ikada_store::blob::{BLOB_BYTES_MAX, digest as digest_of};

const MAGIC: &[u8; 8] = b"IKADABAK";
const FORMAT: u32 = 2;
/// Without the bytes of objects.
const FORMAT_BARE: u32 = 1;
const DONE: &[u8; 4] = b"DONE";
/// Longest chunk that is read.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Most shards that are read.
const SHARDS_MAX: u16 = 4_096;
/// Longest text about trouble.
const TROUBLE_BYTES_MAX: u32 = 4 << 10;
const PIECE: u8 = 1;
const TROUBLE: u8 = 2;

/// Why a backup cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It cannot be read, or ends too early.
    #[error("the backup is cut off or cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("this is no backup of ikada, or one of another version")]
    NotABackup,
    /// A chunk does not match its checksum, or a state does not restore.
    #[error("the backup is damaged in shard {shard}: {why}")]
    Damaged {
        /// Which shard.
        shard: u16,
        /// What was found.
        why: String,
    },
    /// The bytes of objects are not those that the states refer to.
    #[error("the backup is damaged in the bytes of objects: {why}")]
    DamagedPieces {
        /// What was found.
        why: String,
    },
    /// The node that made it could not make it whole.
    #[error("the node could not make the backup whole: {why}")]
    Given {
        /// What the node said.
        why: String,
    },
}

/// The pieces that these states refer to, in order, each once.
pub fn pieces_of(shards: &[Frozen]) -> Vec<Digest> {
    sorted(shards.iter().flat_map(Frozen::pieces))
}

fn sorted(digests: impl Iterator<Item = Digest>) -> Vec<Digest> {
    let mut all: Vec<Digest> = digests.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The first part of a backup, made a chunk at a time: only one is in memory.
pub fn write_states(cluster: u64, shards: Vec<Frozen>) -> impl Iterator<Item = Vec<u8>> + Send {
    let mut head = Vec::from(MAGIC);
    head.extend_from_slice(&FORMAT.to_le_bytes());
    head.extend_from_slice(&(shards.len() as u16).to_le_bytes());
    head.extend_from_slice(&[0; 2]);
    head.extend_from_slice(&cluster.to_le_bytes());
    let bodies = shards.into_iter().enumerate().flat_map(|(shard, frozen)| {
        let at = frozen.applied();
        let mut first = Vec::from((shard as u16).to_le_bytes());
        for number in [at.term, at.index, frozen.hash()] {
            first.extend_from_slice(&number.to_le_bytes());
        }
        let chunks = frozen.chunks().map(|chunk| {
            let mut piece = Vec::with_capacity(chunk.len() + 8);
            piece.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
            piece.extend_from_slice(&crc32c::crc32c(&chunk).to_le_bytes());
            piece.extend_from_slice(&chunk);
            piece
        });
        std::iter::once(first).chain(chunks).chain(std::iter::once(vec![0; 4]))
    });
    std::iter::once(head).chain(bodies)
}

/// What stands before the bytes of a piece.
pub fn write_piece_head(digest: &Digest, length: usize) -> Vec<u8> {
    let mut head = vec![PIECE];
    head.extend_from_slice(&digest.0);
    head.extend_from_slice(&(length as u32).to_le_bytes());
    head
}

/// The end of a backup that cannot be made whole.
pub fn write_trouble(why: &str) -> Vec<u8> {
    let mut text = vec![TROUBLE];
    text.extend_from_slice(&(why.len() as u32).to_le_bytes());
    text.extend_from_slice(why.as_bytes());
    text
}

/// The end of a whole backup.
pub fn write_end() -> Vec<u8> {
    let mut end = vec![0];
    end.extend_from_slice(DONE);
    end
}

/// A backup whose states have been read and checked; the bytes of objects follow one piece at a time.
#[derive(Debug)]
pub struct Backup<R> {
    /// The cluster it was taken of.
    pub cluster: u64,
    /// The states, in order of their shards.
    pub states: Vec<Shard>,
    /// Pieces that must follow.
    expected: std::vec::IntoIter<Digest>,
    from: Option<R>,
}

impl<R: Read> Backup<R> {
    /// Reads and checks the states.
    pub fn open(mut from: R) -> Result<Backup<R>, BackupError> {
        if take::<8>(&mut from)? != *MAGIC {
            return Err(BackupError::NotABackup);
        }
        let format = u32::from_le_bytes(take(&mut from)?);
        let shards = u16::from_le_bytes(take(&mut from)?);
        let _: [u8; 2] = take(&mut from)?;
        let cluster = u64::from_le_bytes(take(&mut from)?);
        let is_known = [FORMAT_BARE, FORMAT].contains(&format);
        if !is_known || shards == 0 || shards > SHARDS_MAX {
            return Err(BackupError::NotABackup);
        }
        let mut states = Vec::new();
        for shard in 0..shards {
            states.push(read_shard(&mut from, shard)?);
        }
        if format == FORMAT_BARE {
            check_done(&mut from)?;
            return Ok(Backup { cluster, states, expected: Vec::new().into_iter(), from: None });
        }
        let referred = states.iter().flat_map(|state| state.references(None, usize::MAX).digests);
        let expected = sorted(referred).into_iter();
        Ok(Backup { cluster, states, expected, from: Some(from) })
    }

    /// How many pieces are still to come; none at all for a backup of an older version.
    pub fn pieces_left(&self) -> usize {
        self.expected.len()
    }

    /// The next piece, checked; none after the last, when the end of the file has been checked, too.
    pub fn next_piece(&mut self) -> Result<Option<(Digest, Vec<u8>)>, BackupError> {
        let damaged = |why: String| BackupError::DamagedPieces { why };
        let Some(from) = &mut self.from else { return Ok(None) };
        match (take::<1>(from)?, self.expected.next()) {
            ([PIECE], Some(digest)) => {
                let found = Digest(take(from)?);
                if found != digest {
                    return Err(damaged(format!("piece {digest} is missing")));
                }
                let length = u32::from_le_bytes(take(from)?) as usize;
                if length > BLOB_BYTES_MAX {
                    return Err(damaged(format!("piece {digest} has {length} bytes")));
                }
                let mut bytes = vec![0; length];
                from.read_exact(&mut bytes)?;
                match digest_of(&bytes) == digest.0 {
                    true => Ok(Some((digest, bytes))),
                    false => Err(damaged(format!("piece {digest} has other bytes"))),
                }
            }
            ([TROUBLE], _) => Err(BackupError::Given { why: read_trouble(from)? }),
            ([0], None) => {
                check_done(from)?;
                self.from = None;
                Ok(None)
            }
            ([0], Some(digest)) => Err(damaged(format!("piece {digest} is missing"))),
            _ => Err(damaged("more pieces than objects have".to_owned())),
        }
    }

    /// Reads and checks all that is left; gives how many pieces and bytes there were.
    pub fn check_rest(&mut self) -> Result<(u64, u64), BackupError> {
        let (mut pieces, mut length) = (0, 0);
        while let Some((_, bytes)) = self.next_piece()? {
            pieces += 1;
            length += bytes.len() as u64;
        }
        Ok((pieces, length))
    }
}

fn read_trouble(from: &mut impl Read) -> Result<String, BackupError> {
    let length = u32::from_le_bytes(take(from)?).min(TROUBLE_BYTES_MAX);
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn check_done(from: &mut impl Read) -> Result<(), BackupError> {
    match take::<4>(from)? == *DONE {
        true => Ok(()),
        false => Err(BackupError::NotABackup),
    }
}

fn read_shard(from: &mut impl Read, shard: u16) -> Result<Shard, BackupError> {
    let damaged = |why: &str| BackupError::Damaged { shard, why: why.to_owned() };
    if u16::from_le_bytes(take(from)?) != shard {
        return Err(damaged("another shard follows"));
    }
    let term = u64::from_le_bytes(take(from)?);
    let index = u64::from_le_bytes(take(from)?);
    let hash = u64::from_le_bytes(take(from)?);
    let mut broken = None;
    let chunks = std::iter::from_fn(|| match read_chunk(from, shard) {
        Ok(chunk) => chunk,
        Err(error) => {
            broken = Some(error);
            None
        }
    });
    let restored = Shard::restore(chunks);
    if let Some(error) = broken {
        return Err(error);
    }
    let state = restored.map_err(|error| damaged(&error.to_string()))?;
    let at = state.applied();
    match (at.term, at.index, state.hash()) == (term, index, hash) {
        true => Ok(state),
        false => Err(damaged("its position or hash differs from what was noted")),
    }
}

fn read_chunk(from: &mut impl Read, shard: u16) -> Result<Option<Vec<u8>>, BackupError> {
    let length = u32::from_le_bytes(take(from)?);
    if length == 0 {
        return Ok(None);
    }
    if length > CHUNK_BYTES_MAX {
        return Err(BackupError::Damaged { shard, why: format!("a chunk of {length} bytes") });
    }
    let checksum = u32::from_le_bytes(take(from)?);
    let mut chunk = vec![0; length as usize];
    from.read_exact(&mut chunk)?;
    match crc32c::crc32c(&chunk) == checksum {
        true => Ok(Some(chunk)),
        false => Err(BackupError::Damaged { shard, why: "a chunk's checksum differs".to_owned() }),
    }
}

fn take<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use ikada_replica::state::Member;

    use super::*;

    fn states() -> Vec<Shard> {
        let member = Member {
            node: 1,
            incarnation: 1,
            peer_addr: "p".to_owned(),
            client_addr: "c".to_owned(),
        };
        (0..3).map(|shard| Shard::genesis(shard, 3, std::slice::from_ref(&member))).collect()
    }

    fn written() -> Vec<u8> {
        let frozen = states().iter().map(Shard::freeze).collect();
        write_states(7, frozen).chain([write_end()]).flatten().collect()
    }

    fn read_all(bytes: &[u8]) -> Result<Backup<&[u8]>, BackupError> {
        let mut backup = Backup::open(bytes)?;
        backup.check_rest()?;
        Ok(backup)
    }

    // F-31
    #[test]
    fn a_backup_gives_the_same_hashes_and_any_damage_is_noticed() {
        let bytes = written();
        let backup = read_all(&bytes).expect("whole");
        assert_eq!(backup.cluster, 7);
        let hashes = |states: &[Shard]| states.iter().map(Shard::hash).collect::<Vec<_>>();
        assert_eq!(hashes(&backup.states), hashes(&states()));
        for end in 0..bytes.len() {
            assert!(read_all(&bytes[..end]).is_err(), "cut at {end}");
        }
        // The bytes of the cluster's id and of the unused room are not part of any state.
        for place in (0..14).chain(24..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x04;
            assert!(read_all(&damaged).is_err(), "flipped at {place}");
        }
    }

    #[test]
    fn a_backup_without_pieces_is_read_as_before() {
        let mut bytes = written();
        let end = bytes.len() - 5;
        bytes.remove(end);
        bytes[8] = 1;
        assert_eq!(read_all(&bytes).expect("whole").states.len(), 3);
    }

    #[test]
    fn pieces_that_nothing_refers_to_and_trouble_are_told() {
        let bytes = written();
        let body = &bytes[..bytes.len() - 5];
        let stray = [body, &write_piece_head(&Digest([7; 32]), 1), &[0], &write_end()].concat();
        assert!(matches!(read_all(&stray), Err(BackupError::DamagedPieces { .. })));
        let trouble = [body, &write_trouble("no node has it")].concat();
        let told = read_all(&trouble).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("no node has it"), "{told}");
    }
}
