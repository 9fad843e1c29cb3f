//! Administrative calls and explanations: one shard, one leg, one answer.

use ikada_consensus::{Change, NodeId};
use ikada_state::{Namespace, RequestKey, ShardId, TaskId};

use crate::call::{Answer, CallId};
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;

impl Replica {
    pub(crate) fn open_transfer(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        shard: ShardId,
        to: Option<NodeId>,
        now: Now,
    ) {
        self.open_admin(call, deadline_ms, shard, Ask::Transfer { to }, now);
    }

    pub(crate) fn open_change(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        shard: ShardId,
        change: &Change,
        now: Now,
    ) {
        let ask = Ask::Change {
            add_voters: change.add_voters.clone(),
            add_learners: change.add_learners.clone(),
            remove: change.remove.clone(),
        };
        self.open_admin(call, deadline_ms, shard, ask, now);
    }

    pub(crate) fn open_explain(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        namespace: Namespace,
        id: TaskId,
        now: Now,
    ) {
        let shard = self.shard_of_task(&namespace, &id);
        self.open_admin(call, deadline_ms, shard, Ask::Explain { namespace, id }, now);
    }

    pub(crate) fn open_grow(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        shards: u16,
        request: Option<RequestKey>,
        now: Now,
    ) {
        let kind = OpenKind::Write { outcomes: vec![None], missing: 1 };
        self.calls.insert(call, OpenCall { deadline_ms, kind });
        let ask = Ask::Grow { shards, request };
        self.open_leg(Leg::new(0, Owner::Call(call, vec![0]), ask, deadline_ms), now);
    }

    pub(crate) fn open_admin(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        shard: ShardId,
        ask: Ask,
        now: Now,
    ) {
        if usize::from(shard) >= self.seats.len() {
            let detail = format!(
                "shard {shard} does not exist: this cluster has shards 0 to {}",
                self.seats.len() - 1
            );
            return self.answer(call, Answer::Refused { code: "shard_not_found".into(), detail });
        }
        self.calls.insert(call, OpenCall { deadline_ms, kind: OpenKind::Admin });
        self.open_leg(Leg::new(shard, Owner::Call(call, Vec::new()), ask, deadline_ms), now);
    }
}
