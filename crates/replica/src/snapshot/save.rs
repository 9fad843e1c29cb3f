//! When to save, and what follows once a snapshot is durable.

use ikada_consensus::{Conf, Start};
use ikada_state::ShardId;

use crate::output::SnapshotWork;
use crate::replica::Replica;

impl Replica {
    /// Starts a snapshot of each shard whose log has grown enough; one shard per turn, so that they are staggered.
    pub(crate) fn save_snapshots(&mut self) {
        let due = self.seats.iter().find(|seat| {
            let progress = &seat.snapshot;
            // As much log as snapshot: whatever the size of the state, at most every other byte goes to snapshots, and
            // starting replays no more than it loads.
            let far = self.config.snapshot_log_bytes.max(progress.last_bytes);
            let grown =
                progress.log_bytes >= far || progress.entries >= self.config.snapshot_entries;
            grown && !progress.saving && seat.loading.is_none()
        });
        if let Some(shard) = due.map(|seat| seat.shard) {
            self.save_snapshot(shard);
        }
    }

    /// The engine has nothing to offer a lagging member yet: a fresh snapshot helps.
    pub(crate) fn snapshot_wanted(&mut self, shard: ShardId) {
        let seat = &self.seats[usize::from(shard)];
        if !seat.snapshot.saving && seat.loading.is_none() {
            self.save_snapshot(shard);
        }
    }

    fn save_snapshot(&mut self, shard: ShardId) {
        let seat = &mut self.seats[usize::from(shard)];
        let applied = seat.state.applied();
        let start = Start { index: applied.index, term: applied.term };
        let Some(conf) = self.consensus.conf_at(shard, start.index) else {
            return;
        };
        seat.snapshot.saving = true;
        seat.snapshot.log_bytes = 0;
        seat.snapshot.entries = 0;
        let frozen = seat.state.freeze();
        self.outputs.snapshots.push(SnapshotWork::Save { shard, frozen, start, conf });
    }

    /// The snapshot is durable: the log before it may go.
    pub(crate) fn snapshot_saved(&mut self, shard: ShardId, start: Start, conf: Conf, bytes: u64) {
        let seat = &mut self.seats[usize::from(shard)];
        seat.snapshot.saving = false;
        seat.snapshot.last_bytes = bytes;
        self.consensus.compact(shard, start, conf);
        self.outputs.purges.push((shard, start));
    }
}
