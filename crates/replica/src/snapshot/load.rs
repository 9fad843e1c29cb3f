//! Installing: the engine took the snapshot, the state follows.

use ikada_consensus::{Conf, Start};
use ikada_state::{Shard, ShardId};

use crate::output::{Halt, Now, SnapshotWork};
use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::Loading;

impl Replica {
    /// The engine's log now begins at this point; the state must be loaded before anything is applied.
    pub(crate) fn snapshot_accepted(&mut self, shard: ShardId, start: Start, conf: Conf) {
        let seat = &mut self.seats[usize::from(shard)];
        seat.loading = Some(Loading { start, conf, waiting: Vec::new() });
        self.outputs.snapshots.push(SnapshotWork::Load { shard, start });
    }

    pub(crate) fn snapshot_loaded(
        &mut self,
        shard: ShardId,
        start: Start,
        state: Result<Box<Shard>, String>,
        now: Now,
    ) {
        let seat = &mut self.seats[usize::from(shard)];
        if seat.loading.as_ref().is_none_or(|loading| loading.start != start) {
            return;
        }
        let state = match state {
            Ok(state) => state,
            Err(why) => {
                self.outputs.halt = Some(Halt::BadSnapshot { shard, why });
                return;
            }
        };
        let Some(loading) = seat.loading.take() else {
            return;
        };
        seat.state = *state;
        seat.snapshot.log_bytes = 0;
        seat.snapshot.entries = 0;
        // What was proposed here below that point may have been committed or not: nobody can tell from the state.
        let unsettled = seat.tickets.partition_point(|ticket| ticket.index <= start.index);
        let unsettled: Vec<_> = seat.tickets.drain(..unsettled).collect();
        for waiter in unsettled.into_iter().flat_map(|ticket| ticket.waiters) {
            self.tell(waiter.asker, Told::Unknown, now);
        }
        self.consensus.snapshot_installed(shard, loading.start, loading.conf);
        self.outputs.purges.push((shard, loading.start));
        self.apply_entries(shard, loading.waiting, now);
    }
}
