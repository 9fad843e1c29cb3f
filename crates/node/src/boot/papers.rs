//! A node's own papers: its id, its disk's incarnation, the founding plan it promised, and the members it last knew.
//! File `founding`, written before the node speaks to anyone, replaced when it promises and when members change.

use ikada_replica::founding::{Candidate, Plan};
use ikada_store::{Disk, RealDisk};
use minicbor::{Decode, Encode};

const FILE: &str = "founding";

/// What a node knows of itself before it belongs to a cluster, and keeps for ever.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Papers {
    /// Its id.
    #[n(0)]
    pub node: u64,
    /// Drawn once per data folder.
    #[n(1)]
    pub incarnation: u64,
    /// The one plan it ever promised.
    #[n(2)]
    pub promise: Option<Plan>,
    /// Whether its log was ever opened: from then on a missing log means a wiped node (F-17).
    #[n(3)]
    pub worked: bool,
    /// The members as last heard; none before they first changed.
    #[n(4)]
    pub members: Option<Vec<Candidate>>,
    /// Whether its cluster's logs live in a database.
    #[n(5)]
    #[cbor(default)]
    pub in_database: bool,
}

/// Why the papers could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PapersError {
    /// The disk failed.
    #[error("data folder: {0}")]
    Io(#[from] std::io::Error),
    /// The file does not match its checksum.
    #[error(
        "the file `founding` in the data folder is damaged: restore it, or rejoin under a new node id"
    )]
    Damaged,
    /// Started without the database, or with one that the folder does not know.
    #[error(
        "the data folder belongs to a cluster whose logs are {found}, but this process was started {asked}"
    )]
    OtherLog {
        /// Where the folder's are.
        found: &'static str,
        /// What was asked for.
        asked: &'static str,
    },
    /// Started under another id than the folder's.
    #[error(
        "data folder belongs to node {found}, but this process was started with --node-id {asked}"
    )]
    OtherNode {
        /// The folder's.
        found: u64,
        /// The one asked for.
        asked: u64,
    },
}

impl Papers {
    /// Reads the papers, or makes new ones with the given id (or a drawn one).
    pub fn load_or_make(
        disk: &RealDisk,
        node_id: Option<u64>,
        draw: &mut fastrand::Rng,
    ) -> Result<Papers, PapersError> {
        if disk.exists(FILE)? {
            let papers = Papers::decode(&disk.read(FILE)?).ok_or(PapersError::Damaged)?;
            return match node_id {
                Some(asked) if asked != papers.node => {
                    Err(PapersError::OtherNode { found: papers.node, asked })
                }
                _ => Ok(papers),
            };
        }
        // Short ids are easier to read and type; 2^40 is plenty against collisions of a handful of nodes.
        let node = node_id.unwrap_or_else(|| draw.u64(1..1 << 40));
        let papers = Papers {
            node,
            incarnation: draw.u64(1..),
            promise: None,
            worked: false,
            members: None,
            in_database: false,
        };
        papers.store(disk)?;
        Ok(papers)
    }

    /// The cluster's plan with the members of today.
    pub fn plan_today(&self) -> Option<Plan> {
        let plan = self.promise.clone()?;
        let members = self.members.clone().unwrap_or_else(|| plan.members.clone());
        Some(Plan { members, ..plan })
    }

    /// Refuses a start that would look for the logs in the wrong place.
    pub fn check_log(&self, in_database: bool) -> Result<(), PapersError> {
        if self.promise.is_none() || self.in_database == in_database {
            return Ok(());
        }
        let (found, asked) = match self.in_database {
            true => ("in a database", "without --log"),
            false => ("in its nodes' folders", "with --log"),
        };
        Err(PapersError::OtherLog { found, asked })
    }

    /// Writes the papers durably.
    pub fn store(&self, disk: &RealDisk) -> Result<(), PapersError> {
        let mut bytes = minicbor::to_vec(self).map_err(std::io::Error::other)?;
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        Ok(disk.replace(FILE, &bytes)?)
    }

    fn decode(bytes: &[u8]) -> Option<Papers> {
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if crc32c::crc32c(body).to_le_bytes() != crc {
            return None;
        }
        minicbor::decode(body).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_are_made_once_and_guarded() {
        let folder = tempfile::tempdir().expect("folder");
        let disk = RealDisk::open(folder.path()).expect("disk");
        let mut draw = fastrand::Rng::with_seed(1);
        let first = Papers::load_or_make(&disk, Some(3), &mut draw).expect("made");
        assert_eq!(Papers::load_or_make(&disk, None, &mut draw).expect("read"), first);
        let error = Papers::load_or_make(&disk, Some(4), &mut draw).unwrap_err();
        assert!(error.to_string().contains("belongs to node 3"), "{error}");
        let path = folder.path().join("founding");
        let mut bytes = std::fs::read(&path).expect("file");
        bytes[2] ^= 1;
        std::fs::write(&path, bytes).expect("write");
        assert!(matches!(Papers::load_or_make(&disk, None, &mut draw), Err(PapersError::Damaged)));
    }
}
