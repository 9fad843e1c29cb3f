//! A tenant with a quota: submits more tasks to a namespace of its own than it may have, and cancels some. Nobody works
//! for it: its tasks die of their deadlines.

use fastrand::Rng;
use ikada_replica::call::Request;
use ikada_state::{
    Cancel, Command, Enqueue, Namespace, Order, QuotaChange, RequestId, RequestKey, SetQuota,
    TaskId, TaskOptions,
};

use super::{Step, some_door, some_queue};
use crate::check::Verdict;
use crate::draw::{chance, log_uniform};
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// The most unfinished tasks of the tenant's namespace.
pub const PENDING_MAX: u64 = 17;

/// Earlier tasks that it may cancel.
const KNOWN_MAX: usize = 40;

/// The tenant's namespace.
pub fn namespace() -> Namespace {
    Namespace::parse("tenant").unwrap_or_else(|error| panic!("namespace: {error}"))
}

/// The tenant.
#[derive(Debug)]
pub struct Tenant {
    rng: Rng,
    count: u64,
    known: Vec<TaskId>,
}

impl Tenant {
    /// A tenant that has asked for nothing yet.
    pub fn new(rng: Rng) -> Self {
        Self { rng, count: 0, known: Vec::new() }
    }

    /// Does a step: asks for the quota until every shard has it, then submits and cancels.
    pub fn step(&mut self, world: &mut World, me: usize) -> Verdict {
        if world.phase == Phase::Liveness {
            return Ok(());
        }
        let orders = match world.has_quota_everywhere(&namespace()) {
            false => vec![self.quota()],
            true if chance(&mut self.rng, 250) && !self.known.is_empty() => vec![self.cancel()],
            true => self.submissions(),
        };
        let node = some_door(world, &mut self.rng);
        let timeout_ms = log_uniform(&mut self.rng, 500, 8_000);
        world.ask(me, node, Request::Write(orders), timeout_ms);
        Ok(())
    }

    fn quota(&self) -> Order {
        let change = QuotaChange { pending_max: Some(PENDING_MAX), ..QuotaChange::default() };
        Order {
            namespace: namespace(),
            request: None,
            command: Command::SetQuota(SetQuota { change }),
        }
    }

    fn cancel(&mut self) -> Order {
        self.count += 1;
        let id = self.known.swap_remove(self.rng.usize(0..self.known.len()));
        self.order(0, Command::Cancel(Cancel { id }))
    }

    fn order(&self, item: u32, command: Command) -> Order {
        let text = format!("tenant-{}", self.count);
        let id = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        Order { namespace: namespace(), request: Some(RequestKey { id, item }), command }
    }

    fn submissions(&mut self) -> Vec<Order> {
        self.count += 1;
        (0..self.rng.u32(1..=6)).map(|item| self.submission(item)).collect()
    }

    fn submission(&mut self, item: u32) -> Order {
        let text = format!("tenant-{}-{item}", self.count);
        let id = TaskId::parse(&text).unwrap_or_else(|error| panic!("task id: {error}"));
        if self.known.len() < KNOWN_MAX {
            self.known.push(id.clone());
        }
        let deadline_in_ms = Some(self.rng.u64(1_000..20_000));
        let options = TaskOptions { deadline_in_ms, ..TaskOptions::default() };
        let task = Enqueue {
            options: Some(Box::new(options)),
            ..Enqueue::new(id, some_queue(&mut self.rng), text.into_bytes())
        };
        self.order(item, Command::Enqueue(task))
    }

    /// A call has ended. What is unknown stays so: the quota counts what is there.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        _open: &OpenCall,
        _end: &CallEnd,
    ) -> Verdict {
        let pause_us = log_uniform(&mut self.rng, 50, 3_000) * 1_000;
        world.schedule.after(pause_us, Event::Actor(me, Step::Next));
        Ok(())
    }
}
