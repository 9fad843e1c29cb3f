//! A reader: looks at tasks, queues, requests and members at all three consistencies, through any node.

use fastrand::Rng;
use ikada_replica::call::{Answer, Consistency, Query, Request, View};
use ikada_state::RequestId;

use super::{Step, namespace, some_door, some_queue};
use crate::check::{Verdict, violation};
use crate::draw::{log_uniform, pick};
use crate::marks::Mark;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, World};

/// One reader.
#[derive(Debug)]
pub struct Reader {
    rng: Rng,
}

impl Reader {
    /// A reader.
    pub fn new(rng: Rng) -> Self {
        Self { rng }
    }

    /// Asks something.
    pub fn step(&mut self, world: &mut World, me: usize) -> Verdict {
        let query = self.query(world);
        let consistency = match self.rng.u8(0..10) {
            0..6 => Consistency::Linearizable,
            6..8 => Consistency::Stale,
            _ => Consistency::AtLeast(world.watch.acknowledged.all()),
        };
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Read(query, consistency), 3_000);
        Ok(())
    }

    fn query(&mut self, world: &World) -> Query {
        let known = &world.clients.submitted;
        match self.rng.u8(0..10) {
            0..6 if !known.is_empty() => {
                let recent = known.len().saturating_sub(40);
                Query::Task(namespace(), known[self.rng.usize(recent..known.len())].clone())
            }
            6 => Query::Queue(namespace(), some_queue(&mut self.rng)),
            7 => Query::Queues(namespace()),
            8 if !world.clients.open.is_empty() => {
                let open: Vec<_> = world.clients.open.keys().collect();
                let key = *pick(&mut self.rng, &open);
                Query::Request(namespace(), key.id.clone(), key.item)
            }
            9 => Query::Members,
            _ => {
                let id = RequestId::parse("nobody")
                    .unwrap_or_else(|error| panic!("request id: {error}"));
                Query::Request(namespace(), id, 0)
            }
        }
    }

    /// A read has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        open: &OpenCall,
        end: &CallEnd,
    ) -> Verdict {
        let think_us = log_uniform(&mut self.rng, 100, 5_000) * 1_000;
        world.schedule.after(think_us, Event::Actor(me, Step::Next));
        let Request::Read(query, consistency) = &open.request else {
            return Ok(());
        };
        match end {
            CallEnd::Answered(Answer::View { view, lsns, .. }) => {
                if world.now_us() - open.sent_us > 500_000
                    && *consistency == Consistency::Linearizable
                {
                    world.mark(Mark::ReadDuringElection);
                }
                compare(world, query, view, lsns)
            }
            _ => {
                world.tally.unavailable += 1;
                Ok(())
            }
        }
    }
}

/// Where the reference stands at the very position of the answer, both must say the same.
fn compare(
    world: &World,
    query: &Query,
    view: &View,
    lsns: &[(ikada_state::ShardId, ikada_state::Lsn)],
) -> Verdict {
    let (Query::Task(namespace, id), View::Task(seen)) = (query, view) else {
        return Ok(());
    };
    let shard = world.shard_of_task(id);
    let ledger = &world.watch.ledgers[usize::from(shard)];
    let Some(reference) = ledger.reference() else {
        return Ok(());
    };
    let at = lsns.iter().find(|(of, _)| *of == shard).map(|(_, lsn)| *lsn);
    if at != Some(reference.applied()) || reference.task(namespace, id).map(Box::new) == *seen {
        return Ok(());
    }
    violation(
        "R10 linearizable_reads",
        format!("a read of task {id} at {at:?} shows another task than was committed"),
    )
}
