//! A frame from a peer: its sender is checked, its messages are handed on.

use bytes::Bytes;
use ikada_consensus::NodeId;

use crate::output::{Halt, Now};
use crate::peer::{self, Header, PeerMessage};
use crate::planted::{self, Bug};
use crate::replica::Replica;
use crate::seat::Asker;

impl Replica {
    pub(crate) fn frame(&mut self, from: NodeId, frame: Bytes, now: Now) {
        let Ok((header, messages)) = peer::decode(frame) else {
            return;
        };
        if header.from != from || !self.is_admitted(&header) {
            return;
        }
        self.clocks.hear(from, header.wall_ms, now);
        self.peers.entry(from).or_default().heard_ms = Some(now.mono_ms);
        for message in messages {
            self.peer_message(from, message, now);
        }
    }

    /// Whether a frame may be believed: same cluster, meant for us, and from the disk that the cluster knows under
    /// that id (F-17, R9), or from an id it has not heard of yet. A frame that knows *us* under another disk means that ours was wiped.
    pub fn is_admitted(&mut self, header: &Header) -> bool {
        if header.cluster != self.config.cluster || header.to != self.config.node {
            return false;
        }
        if header.to_incarnation != 0 && header.to_incarnation != self.config.incarnation {
            self.outputs.halt = Some(Halt::Wiped { node: self.config.node });
            return false;
        }
        // An id that left is no stranger: a shard whose log we follow late may still count its vote, and the disk behind it
        // may be another by now.
        if self.roster().is_some_and(|roster| roster.is_removed(header.from)) {
            return false;
        }
        let known = self.members().iter().find(|member| member.node == header.from);
        known.is_none_or(|member| {
            member.incarnation == header.from_incarnation || planted::active(Bug::WipedNodeAdmitted)
        })
    }

    fn peer_message(&mut self, from: NodeId, message: PeerMessage, now: Now) {
        match message {
            PeerMessage::Raft(message) => self.consensus.receive(from, message, now.mono_ms),
            PeerMessage::Ask { leg, shard, ask } => {
                let asker = Asker::Remote(from, leg);
                if let Some(told) = self.gate(shard, asker, &ask, now) {
                    self.tell(asker, told, now);
                }
            }
            PeerMessage::Told { leg, told } => self.leg_told(leg, told, now),
            PeerMessage::Hint(hint) => self.hinted(&hint, now),
            PeerMessage::Hash(report) => {
                let conf = self.consensus.conf(report.shard);
                let node = self.config.node;
                if let Some(halt) = self.hashes.report(from, report, node, &conf.voters) {
                    self.outputs.halt = Some(halt);
                }
            }
            PeerMessage::Snapshot(step) => self.snapshot_message(from, step, now),
            PeerMessage::DiskStill => self.disk_still(from, now),
            PeerMessage::DiskLow => self.disk_low(from, now),
            PeerMessage::Level(level) => self.peers.entry(from).or_default().level = Some(level),
            PeerMessage::Reach(reach) => self.reach_heard(from, reach),
        }
    }
}
