//! Who this data folder belongs to: the file `identity`.
//!
//! Written once when a node is created (temporary file, sync, rename, sync of the folder), read at every
//! start. Every other file of the folder carries cluster, node and incarnation as well, so a file that
//! was copied between nodes is refused by name.
//!
//! Format, little endian: magic `IKADA-ID` (8), format version u32, name length u32, cluster u64, node u64,
//! incarnation u64, name bytes, crc32c u32 of all that.

use crate::codec::Reader;
use crate::disk::Disk;
use std::io;

const MAGIC: &[u8; 8] = b"IKADA-ID";
const FORMAT: u32 = 1;
const FILE: &str = "identity";
const NAME_BYTES_MAX: usize = 255;

/// A node's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, drawn at random when it was founded.
    pub cluster: u64,
    /// The node's id; never given to another data folder.
    pub node: u64,
    /// Drawn once when the data folder is created; constant for its life. A wiped folder gets another.
    pub incarnation: u64,
    /// The node's name for people.
    pub name: String,
}

/// Why the identity could not be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The disk failed.
    #[error("identity file: {0}")]
    Io(#[from] io::Error),
    /// The bytes are not an identity, or are damaged.
    #[error("identity file is damaged ({0}): restore it or rejoin under a new node id")]
    Damaged(&'static str),
    /// Written by a newer program.
    #[error("identity file has format {found}, this program knows {FORMAT}")]
    Format {
        /// Version in the file.
        found: u32,
    },
    /// The folder belongs to someone else.
    #[error(
        "data folder belongs to {what} {found}, but this process was started as {what} {expected}"
    )]
    Mismatch {
        /// `cluster`, `node` or `incarnation`.
        what: &'static str,
        /// Value in the file.
        found: u64,
        /// Value that was asked for.
        expected: u64,
    },
    /// The name is too long.
    #[error("node name has {0} bytes, more than {NAME_BYTES_MAX}")]
    Name(usize),
}

impl Identity {
    /// Reads the identity; `None` if the folder has none yet.
    pub fn load<D: Disk>(disk: &D) -> Result<Option<Identity>, IdentityError> {
        if !disk.exists(FILE)? {
            return Ok(None);
        }
        Identity::decode(&disk.read(FILE)?).map(Some)
    }

    /// Writes the identity durably. Refuses to change whom an existing folder belongs to.
    pub fn store<D: Disk>(&self, disk: &D) -> Result<(), IdentityError> {
        if let Some(found) = Identity::load(disk)? {
            found.require(self)?;
        }
        Ok(disk.replace(FILE, &self.encode()?)?)
    }

    /// Refuses if `self`, read from the folder, differs from what was expected.
    pub fn require(&self, expected: &Identity) -> Result<(), IdentityError> {
        let facts = [
            ("cluster", self.cluster, expected.cluster),
            ("node", self.node, expected.node),
            ("incarnation", self.incarnation, expected.incarnation),
        ];
        for (what, found, expected) in facts {
            if found != expected {
                return Err(IdentityError::Mismatch { what, found, expected });
            }
        }
        Ok(())
    }

    fn encode(&self) -> Result<Vec<u8>, IdentityError> {
        if self.name.len() > NAME_BYTES_MAX {
            return Err(IdentityError::Name(self.name.len()));
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&(self.name.len() as u32).to_le_bytes());
        for number in [self.cluster, self.node, self.incarnation] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.name.as_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Identity, IdentityError> {
        use IdentityError::Damaged;
        let body_length = bytes.len().checked_sub(4).ok_or(Damaged("too short"))?;
        let (body, crc) = bytes.split_at(body_length);
        if crc != crc32c::crc32c(body).to_le_bytes() {
            return Err(Damaged("checksum"));
        }
        let mut reader = Reader::new(body);
        if reader.bytes(8) != Some(MAGIC) {
            return Err(Damaged("magic"));
        }
        match reader.u32() {
            Some(FORMAT) => {}
            Some(found) => return Err(IdentityError::Format { found }),
            None => return Err(Damaged("too short")),
        }
        let fields = (|| {
            let length = reader.u32()? as usize;
            let (cluster, node, incarnation) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let name = String::from_utf8(reader.bytes(length)?.to_vec()).ok()?;
            (reader.remaining() == 0).then_some(Identity { cluster, node, incarnation, name })
        })();
        fields.ok_or(Damaged("fields"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    fn sample() -> Identity {
        Identity { cluster: 7, node: 2, incarnation: 99, name: "blue".into() }
    }

    #[test]
    fn round_trip_and_idempotent_store() {
        let disk = SimDisk::new();
        assert_eq!(Identity::load(&disk).unwrap(), None);
        sample().store(&disk).unwrap();
        sample().store(&disk).unwrap();
        disk.crash(&mut fastrand::Rng::with_seed(1));
        assert_eq!(Identity::load(&disk).unwrap(), Some(sample()));
    }

    #[test]
    fn another_owner_is_refused_by_name() {
        // F-16, F-17
        let disk = SimDisk::new();
        sample().store(&disk).unwrap();
        let wiped = Identity { incarnation: 100, ..sample() };
        let text = wiped.store(&disk).unwrap_err().to_string();
        assert!(text.contains("incarnation 99") && text.contains("incarnation 100"), "{text}");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().encode().unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Identity::decode(&bad).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Identity::decode(&bytes[..length]).is_err(), "length {length}");
        }
    }
}
