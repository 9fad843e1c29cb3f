//! What nodes say to each other before there is a cluster.

use ikada_consensus::NodeId;
use minicbor::decode::Error;
use minicbor::{Decode, Decoder, Encode};

/// Longest founding message that is read.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Most candidates of one message: as many as a cluster may have members. A candidate takes six bytes on the wire and ten
/// times as much in memory, so that a bound on bytes alone would say little.
pub const CANDIDATES_MAX: usize = 64;

/// A node that would be a member.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Candidate {
    /// Its id.
    #[n(0)]
    pub node: NodeId,
    /// Its disk: drawn once when its data folder was made.
    #[n(1)]
    pub incarnation: u64,
    /// Where peers reach it.
    #[n(2)]
    pub peer_addr: String,
    /// Where clients reach it.
    #[n(3)]
    pub client_addr: String,
}

/// The first configuration.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Plan {
    /// The new cluster's id, drawn by the proposer.
    #[n(0)]
    pub cluster: u64,
    /// All members, in id order.
    #[n(1)]
    #[cbor(decode_with = "few")]
    pub members: Vec<Candidate>,
    /// How many shards.
    #[n(2)]
    pub shards: u16,
}

/// A question or its answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FoundingMessage {
    /// "This is me, and whom I have heard of." Also the answer to itself.
    #[n(0)]
    Hello {
        /// The speaker.
        #[n(0)]
        me: Candidate,
        /// How many members the speaker expects.
        #[n(1)]
        expect: u16,
        /// How many shards it would found.
        #[n(2)]
        shards: u16,
        /// Everyone it has heard of.
        #[n(3)]
        #[cbor(decode_with = "few")]
        known: Vec<Candidate>,
    },
    /// "Promise me this plan."
    #[n(1)]
    Propose(#[n(0)] Plan),
    /// "I have promised the plan of this cluster, durably."
    #[n(2)]
    Promised {
        /// Who promised.
        #[n(0)]
        node: NodeId,
        /// Which plan.
        #[n(1)]
        cluster: u64,
    },
    /// "I will not", and why.
    #[n(3)]
    Refused {
        /// Who refused.
        #[n(0)]
        node: NodeId,
        /// The reason in words.
        #[n(1)]
        why: String,
    },
    /// "The cluster stands": said by every founded node to whoever asks, with its members and shards of today.
    #[n(4)]
    Founded(#[n(0)] Plan),
    /// "I wait to be added: am I a member?" Also "who are you?" to a node that may be waiting itself.
    #[n(5)]
    Join(#[n(0)] Candidate),
    /// "I wait to be added to a cluster."
    #[n(6)]
    Waiting {
        /// The speaker.
        #[n(0)]
        me: Candidate,
        /// The protocol that it speaks.
        #[n(1)]
        protocol: u16,
        /// What its program understands.
        #[n(2)]
        #[cbor(default)]
        level: u32,
    },
    /// "This id left the cluster for good."
    #[n(7)]
    Removed {
        /// The id.
        #[n(0)]
        node: NodeId,
    },
}

/// Reads candidates, and gives up at one too many.
fn few<'b, C>(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Vec<Candidate>, Error> {
    let mut candidates = Vec::new();
    for candidate in decoder.array_iter_with(context)? {
        if candidates.len() == CANDIDATES_MAX {
            return Err(Error::message("too many candidates"));
        }
        candidates.push(candidate?);
    }
    Ok(candidates)
}

impl FoundingMessage {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding into a Vec cannot fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// The node in whose name it is said, where it names one.
    pub fn speaker(&self) -> Option<NodeId> {
        match self {
            FoundingMessage::Hello { me, .. }
            | FoundingMessage::Join(me)
            | FoundingMessage::Waiting { me, .. } => Some(me.node),
            FoundingMessage::Promised { node, .. } | FoundingMessage::Refused { node, .. } => {
                Some(*node)
            }
            FoundingMessage::Propose(_)
            | FoundingMessage::Founded(_)
            | FoundingMessage::Removed { .. } => None,
        }
    }

    /// Reads a message; any other bytes give `None`.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return None;
        }
        minicbor::decode(bytes).ok()
    }
}

impl Plan {
    /// The plan as bytes, for the identity on disk.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding into a Vec cannot fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Reads a plan; any other bytes give `None`.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        minicbor::decode(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // X7
    #[test]
    fn x_7_a_message_bears_no_more_candidates_than_a_cluster_has_members() {
        let one = |node| Candidate {
            node,
            incarnation: 0,
            peer_addr: String::new(),
            client_addr: String::new(),
        };
        let plan = |count| Plan { cluster: 1, members: (0..count).map(one).collect(), shards: 1 };
        let hello = |count| FoundingMessage::Hello {
            me: one(0),
            expect: 3,
            shards: 1,
            known: (0..count).map(one).collect(),
        };
        let (most, more) = (CANDIDATES_MAX as u64, CANDIDATES_MAX as u64 + 1);
        assert_eq!(FoundingMessage::decode(&hello(most).encode()), Some(hello(most)));
        assert_eq!(FoundingMessage::decode(&hello(more).encode()), None);
        assert_eq!(Plan::decode(&plan(most).encode()), Some(plan(most)));
        assert_eq!(Plan::decode(&plan(more).encode()), None);
    }
}
