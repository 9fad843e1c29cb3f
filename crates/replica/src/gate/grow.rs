//! Growth: the leader of shard 0 adds who the first voters of the new shards are; apply decides the rest.

use ikada_state::{Command, Grow, Namespace, Order, RequestKey, ShardId};

use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::Asker;

impl Replica {
    /// Proposes a growth, unless the members of shard 0 are being changed: its voters are those of the new shards.
    pub(crate) fn decide_grow(
        &mut self,
        shard: ShardId,
        asker: Asker,
        shards: u16,
        request: Option<RequestKey>,
    ) -> Option<Told> {
        if self.is_leased() {
            let detail = "logs that live in a database cannot be added at run time".to_owned();
            return Some(Told::Refused { code: "growth_unsupported".into(), detail });
        }
        let conf = self.consensus.conf(shard);
        if conf.is_joint() || !conf.learners.is_empty() {
            let detail = "members are being added or removed; grow once that is done".to_owned();
            return Some(Told::Refused { code: "members_changing".into(), detail });
        }
        let command = Command::Grow(Grow { shards, voters: conf.voters });
        let order = Order { namespace: Namespace::default(), request, command };
        self.enqueue_orders(shard, asker, std::slice::from_ref(&order));
        None
    }
}
