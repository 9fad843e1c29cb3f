//! Does what a node's outbox asks for, and checks it.

use bytes::Bytes;
use ikada_consensus::{
    Entry, EntryKind, MessageKind, NodeId, Outbox, Role, RoleChange, SnapshotNeed,
};

use super::{Net, Packet, SHARD};

impl Net {
    /// Polls a node until it has nothing more to do.
    pub fn work(&mut self, node: NodeId) {
        loop {
            let out = self.outbox(node);
            if out.is_empty() {
                return;
            }
            self.record(node, &out);
            self.check_roles(node, &out.roles);
            for fault in &out.faults {
                assert!(self.allow_faults, "node {node}: {fault} (seed {})", self.seed);
                self.faults.push(fault.to_string());
            }
            for (to, _, message) in &out.send {
                if message.kind() == MessageKind::Append {
                    let is_empty = message.entry_count() == 0;
                    self.appends.0 += usize::from(!is_empty);
                    self.appends.1 += usize::from(is_empty);
                }
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                self.send(node, *to, &Bytes::from(bytes));
            }
            for need in &out.snapshots {
                self.send_snapshot(node, need);
            }
            self.start_write(node, &out);
            self.install(node, &out);
            for (_, entries) in &out.apply {
                self.apply(node, entries);
            }
            self.check_reads(node, &out);
            let found = self.nodes.get_mut(&node).expect("known node");
            found.reads.extend(out.reads.iter().map(|(_, id, index)| (*id, *index)));
            found.reads_lost.extend(out.reads_lost.iter().map(|(_, id)| *id));
            if !out.snapshots_wanted.is_empty() {
                self.compact(node);
            }
        }
    }

    fn start_write(&mut self, node: NodeId, out: &Outbox) {
        let now_ms = self.now_ms;
        let found = self.nodes.get_mut(&node).expect("known node");
        if let Some(io) = &out.io {
            found.writes.push_back((now_ms + found.sync_ms, io.clone()));
        }
    }

    fn install(&mut self, node: NodeId, out: &Outbox) {
        for (shard, start, conf) in &out.install {
            let found = self.nodes.get_mut(&node).expect("known node");
            assert!(start.index >= found.applied, "a snapshot never goes back");
            found.applied = start.index;
            found.disk.snapshot = Some((*start, conf.clone()));
            self.at(node).snapshot_installed(*shard, *start, conf.clone());
        }
    }

    fn apply(&mut self, node: NodeId, entries: &[Entry]) {
        for entry in entries {
            let found = self.nodes.get_mut(&node).expect("known node");
            assert_eq!(entry.index, found.applied + 1, "node {node} applies in order");
            found.applied = entry.index;
            if !self.history.contains_key(&entry.index) {
                self.check_quorum(node, entry);
            }
            let first = self.history.entry(entry.index).or_insert_with(|| entry.clone());
            assert_eq!(first, entry, "node {node} applies something else (seed {})", self.seed);
            let is_durable = self.nodes[&node].disk.state.start.index >= entry.index
                || self.nodes[&node].disk.state.entries.iter().any(|durable| durable == entry);
            assert!(is_durable, "node {node} applies {} before it is durable", entry.index);
        }
        if let Some(change) = entries.last().filter(|entry| entry.kind == EntryKind::Change) {
            let conf = self.see(node).conf_at(SHARD, change.index).expect("just applied");
            let first = self.confs.entry(change.index).or_insert_with(|| conf.clone());
            assert_eq!(first, &conf, "node {node} has another membership (seed {})", self.seed);
        }
        let applied = self.nodes[&node].applied;
        self.at(node).applied(SHARD, applied);
    }

    /// R6: what anybody applies is synced on a majority of every half of a membership that was in force. The
    /// engine switches when it applies, so an entry may still be counted by the membership before.
    fn check_quorum(&self, node: NodeId, entry: &Entry) {
        let is_majority = |half: &[NodeId]| {
            let holds = |voter: &&NodeId| self.nodes[voter].disk.held(entry);
            half.is_empty() || half.iter().filter(holds).count() > half.len() / 2
        };
        let recent = (1..=entry.index.min(40))
            .filter_map(|back| self.see(node).conf_at(SHARD, entry.index - back));
        let is_durable = recent
            .into_iter()
            .any(|conf| is_majority(&conf.voters) && is_majority(&conf.voters_outgoing));
        assert!(is_durable, "{entry:?} is applied by {node} but not durable (seed {})", self.seed);
    }

    /// R10: a read sees everything that was applied anywhere before it was asked.
    fn check_reads(&self, node: NodeId, out: &Outbox) {
        for (_, id, index) in &out.reads {
            let asked = self.asked.get(id).copied().unwrap_or(0);
            assert!(
                *index >= asked,
                "node {node} answers read {id} too early (seed {})",
                self.seed
            );
        }
    }

    /// R1: a term has one leader.
    fn check_roles(&mut self, node: NodeId, roles: &[RoleChange]) {
        for change in roles {
            if change.role == Role::Leader {
                let leader = *self.leaders.entry(change.term).or_insert(node);
                assert_eq!(
                    leader, node,
                    "two leaders in term {} (seed {})",
                    change.term, self.seed
                );
            }
        }
        self.nodes.get_mut(&node).expect("known node").roles.extend_from_slice(roles);
    }

    fn send(&mut self, from: NodeId, to: NodeId, bytes: &Bytes) {
        if self.cuts.contains(&(from, to)) || !self.nodes.contains_key(&to) {
            return;
        }
        if self.rng.u8(..100) < self.loss {
            return;
        }
        let copies = if self.rng.u8(..100) < self.duplicates { 2 } else { 1 };
        for _ in 0..copies {
            let at_ms = self.now_ms + self.rng.u64(1..=4);
            self.sent += 1;
            self.wire.insert((at_ms, self.sent), (from, to, Packet::Frame(bytes.clone())));
        }
    }

    fn send_snapshot(&mut self, from: NodeId, need: &SnapshotNeed) {
        let mut bytes = Vec::new();
        need.message.encode(&mut bytes);
        self.sent += 1;
        let key = (self.now_ms + 20, self.sent);
        self.wire.insert(key, (from, need.to, Packet::Snapshot(Bytes::from(bytes))));
    }

    fn record(&mut self, node: NodeId, out: &Outbox) {
        if self.trace.len() < 200_000 {
            self.trace.push(format!("{} n{node} {out:?}", self.now_ms));
        }
    }
}
