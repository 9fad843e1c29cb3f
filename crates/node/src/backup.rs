//! The backup file: the state of every shard as a stream, checked when it is read.
//!
//! Format, little endian: magic `IKADABAK` (8), format u32, shards u16, zero u16, cluster u64, then per shard: shard
//! u16, term u64, index u64, state hash u64, chunks (length u32 above 0, crc32c u32, bytes), a zero length; at last the
//! mark `DONE` (4). A file that ends earlier is refused, so that a broken download never looks like a backup.

use std::io::{self, Read};

use ikada_replica::state::{Frozen, Shard};

const MAGIC: &[u8; 8] = b"IKADABAK";
const FORMAT: u32 = 1;
const DONE: &[u8; 4] = b"DONE";
/// Longest chunk that is read.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Most shards that are read.
const SHARDS_MAX: u16 = 4_096;

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
}

/// A backup, read and checked.
#[derive(Debug)]
pub struct Backup {
    /// The cluster it was taken of.
    pub cluster: u64,
    /// The states, in order of their shards.
    pub states: Vec<Shard>,
}

/// The pieces of a backup, made one at a time: only one chunk is in memory.
pub fn write_backup(cluster: u64, shards: Vec<Frozen>) -> impl Iterator<Item = Vec<u8>> + Send {
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
    std::iter::once(head).chain(bodies).chain(std::iter::once(DONE.to_vec()))
}

/// Reads and checks a whole backup.
pub fn read_backup(mut from: impl Read) -> Result<Backup, BackupError> {
    if take::<8>(&mut from)? != *MAGIC || u32::from_le_bytes(take(&mut from)?) != FORMAT {
        return Err(BackupError::NotABackup);
    }
    let shards = u16::from_le_bytes(take(&mut from)?);
    let _: [u8; 2] = take(&mut from)?;
    let cluster = u64::from_le_bytes(take(&mut from)?);
    if shards == 0 || shards > SHARDS_MAX {
        return Err(BackupError::NotABackup);
    }
    let mut states = Vec::new();
    for shard in 0..shards {
        states.push(read_shard(&mut from, shard)?);
    }
    if take::<4>(&mut from)? != *DONE {
        return Err(BackupError::NotABackup);
    }
    Ok(Backup { cluster, states })
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
    use super::*;
    use ikada_replica::state::Member;

    fn states() -> Vec<Shard> {
        let member = Member {
            node: 1,
            incarnation: 1,
            peer_addr: "p".to_owned(),
            client_addr: "c".to_owned(),
        };
        (0..3).map(|shard| Shard::genesis(shard, 3, std::slice::from_ref(&member))).collect()
    }

    // F-31
    #[test]
    fn a_backup_gives_the_same_hashes_and_any_damage_is_noticed() {
        let frozen = states().iter().map(Shard::freeze).collect();
        let bytes: Vec<u8> = write_backup(7, frozen).flatten().collect();
        let backup = read_backup(bytes.as_slice()).expect("whole");
        assert_eq!(backup.cluster, 7);
        let hashes = |states: &[Shard]| states.iter().map(Shard::hash).collect::<Vec<_>>();
        assert_eq!(hashes(&backup.states), hashes(&states()));
        for end in 0..bytes.len() {
            assert!(read_backup(&bytes[..end]).is_err(), "cut at {end}");
        }
        // The bytes of the cluster's id and of the unused room are not part of any state.
        for place in (0..14).chain(24..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x04;
            assert!(read_backup(damaged.as_slice()).is_err(), "flipped at {place}");
        }
    }
}
