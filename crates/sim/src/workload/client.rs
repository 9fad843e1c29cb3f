//! A client: submits tasks in small batches, cancels, retries, drops and purges some, changes queues, voids requests, resends what it is unsure about, and now
//! and then misuses a request id.

use std::collections::{BTreeSet, VecDeque};

use fastrand::Rng;
use ikada_replica::call::{Answer, Outcome, Request};
use ikada_state::{
    Backoff, Cancel, Command, DropTask, Enqueue, Order, QueueChange, RefusalCode, Reply, RequestId,
    RequestKey, Retry, SetQueue, Sweep, SweepAction, TaskId, TaskOptions, Void, encode_then,
};

use super::{Step, labels, namespace, some_door, some_queue};
use crate::check::{Verdict, honest_outcome};
use crate::draw::{chance, log_uniform, pick};
use crate::marks::Mark;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// A request is sent this often at most.
const TRIES_MAX: u32 = 6;
/// Ordering keys in use: few, so that their lines are long.
const KEYS: u32 = 4;
/// Old requests kept for a resend out of the blue.
const OLD_KEPT: usize = 20;

/// One client.
#[derive(Debug)]
pub struct Client {
    number: u64,
    rng: Rng,
    count: u64,
    /// What is being asked; sent again until it is settled or given up.
    current: Option<Vec<Order>>,
    tries: u32,
    old: VecDeque<Vec<Order>>,
    /// Requests that were made when every shard remembered the names of its tasks.
    named: BTreeSet<RequestId>,
}

impl Client {
    /// A client with a number of its own.
    pub fn new(number: u64, rng: Rng) -> Self {
        Self {
            number,
            rng,
            count: 0,
            current: None,
            tries: 0,
            old: VecDeque::new(),
            named: BTreeSet::new(),
        }
    }

    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize, step: &Step) -> Verdict {
        if self.current.is_none() {
            if world.phase == Phase::Liveness {
                return Ok(());
            }
            self.tries = 0;
            self.current = Some(self.choose(world));
        }
        debug_assert!(matches!(step, Step::Next | Step::Again(_)), "a client has no other steps");
        let Some(orders) = self.current.clone() else {
            return Ok(());
        };
        self.tries += 1;
        for order in &orders {
            world.clients.sent(order);
        }
        let node = some_door(world, &mut self.rng);
        let timeout_ms = log_uniform(&mut self.rng, 500, 8_000);
        world.ask(me, node, Request::Write(orders), timeout_ms);
        Ok(())
    }

    fn choose(&mut self, world: &World) -> Vec<Order> {
        let dice = self.rng.u32(0..100);
        let orders = match dice {
            0..60 => self.submissions(world),
            60..72 => self.cancels(world),
            72..78 => vec![self.queue_change(world)],
            78..92 if !self.old.is_empty() => return self.again(),
            92..95 if !self.old.is_empty() => return self.misuse(),
            95..97 => vec![self.revision(world)],
            97 => self.sweeps(world),
            98 if !self.old.is_empty() => return self.voids(world),
            _ => self.submissions(world),
        };
        if world.keeps_names() {
            self.named
                .extend(orders.iter().filter_map(|order| Some(order.request.as_ref()?.id.clone())));
        }
        self.old.push_back(orders.clone());
        if self.old.len() > OLD_KEPT {
            self.old.pop_front();
        }
        orders
    }

    /// An old request, sometimes under another key: whoever lost the key still knows the names of the tasks. Only of tasks
    /// that were submitted since all shards remember names, and while slots stay where they are.
    fn again(&mut self) -> Vec<Order> {
        let old = self.rng.usize(0..self.old.len());
        let mut orders = self.old[old].clone();
        let is_named = |order: &Order| {
            let task = matches!(order.command, Command::Enqueue(_));
            task && order.request.as_ref().is_some_and(|key| self.named.contains(&key.id))
        };
        if orders.iter().all(is_named) && chance(&mut self.rng, 300) {
            self.count += 1;
            for (item, order) in (0..).zip(&mut orders) {
                order.request = Some(self.key(item));
            }
        }
        orders
    }

    fn key(&self, item: u32) -> RequestKey {
        let text = format!("c{}-{}", self.number, self.count);
        let id = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        RequestKey { id, item }
    }

    fn order(&self, item: u32, command: Command) -> Order {
        Order { namespace: namespace(), request: Some(self.key(item)), command }
    }

    fn submissions(&mut self, world: &World) -> Vec<Order> {
        self.count += 1;
        let items = if chance(&mut self.rng, 300) { self.rng.u32(2..=5) } else { 1 };
        (0..items).map(|item| self.submission(world, item)).collect()
    }

    fn submission(&mut self, world: &World, item: u32) -> Order {
        let knobs = &world.plan.knobs;
        let mut text = format!("t{}-{}-{item}", self.number, self.count);
        if chance(&mut self.rng, 250) {
            text = format!("k{}:{text}", self.rng.u32(0..KEYS));
        }
        let id = TaskId::parse(&text).unwrap_or_else(|error| panic!("task id: {error}"));
        let length = if chance(&mut self.rng, 50) {
            self.rng.usize(0..4_000)
        } else {
            self.rng.usize(0..40)
        };
        let payload: Vec<u8> = std::iter::repeat_with(|| self.rng.u8(..)).take(length).collect();
        let mut task = Enqueue::new(id, some_queue(&mut self.rng), payload);
        task.ttl_ms = Some(knobs.ttl_ms as u32);
        task.max_attempts = Some(knobs.attempts_max as u16);
        task.backoff = Some(Backoff { base_ms: 50, cap_ms: self.rng.u32(50..3_000) });
        task.priority = chance(&mut self.rng, 300).then(|| self.rng.u8(0..=9));
        // A moment by the log that lags most may be over already elsewhere.
        let ahead_ms = chance(&mut self.rng, 250).then(|| self.rng.u64(0..8_000));
        match chance(&mut self.rng, 400) {
            true => task.run_at_ms = ahead_ms.map(|ahead_ms| world.log_ms() + ahead_ms),
            false => task.delay_ms = ahead_ms,
        }
        if chance(&mut self.rng, 400) {
            let options = self.options(&task, ahead_ms.unwrap_or(0), knobs.ttl_ms);
            task.options = Some(Box::new(options));
        }
        self.order(item, Command::Enqueue(task))
    }

    /// Key limits, labels, timeouts, deadlines, follow-ups, a retention of its own.
    fn options(&mut self, task: &Enqueue, ahead_ms: u64, ttl_ms: u64) -> TaskOptions {
        let rng = &mut self.rng;
        let keyed = task.id.key().is_some();
        let then = chance(rng, 300).then(|| {
            let name = format!("{}-then", task.id.bare_id());
            let id = TaskId::keyed(task.id.routing_key(), &name);
            let id = id.unwrap_or_else(|error| panic!("task id: {error}"));
            let mut next = Enqueue::new(id, some_queue(rng), b"then".to_vec());
            next.ttl_ms = task.ttl_ms;
            encode_then(&[next])
        });
        let later_ms = ahead_ms + 1_000;
        TaskOptions {
            key_limit: (keyed && chance(rng, 300)).then(|| rng.u16(0..4)),
            labels: if chance(rng, 400) { labels(rng.usize(0..=3)) } else { labels(0) },
            timeout_ms: chance(rng, 200).then(|| rng.u32(ttl_ms as u32 / 2..ttl_ms as u32 * 3)),
            deadline_ms: None,
            deadline_in_ms: chance(rng, 150).then(|| rng.u64(later_ms..later_ms + 20_000)),
            retention_ms: chance(rng, 100).then(|| rng.u64(0..30_000)),
            then,
            work: None,
            asked: None,
        }
    }

    fn cancels(&mut self, world: &World) -> Vec<Order> {
        self.count += 1;
        let known = &world.clients.submitted;
        if known.is_empty() {
            return self.submissions(world);
        }
        // Recent tasks are the ones that may still run.
        let recent = known.len().saturating_sub(15);
        let id = known[self.rng.usize(recent..known.len())].clone();
        vec![self.order(0, Command::Cancel(Cancel { id }))]
    }

    fn queue_change(&mut self, world: &World) -> Order {
        self.count += 1;
        let knobs = &world.plan.knobs;
        let rng = &mut self.rng;
        let mut change = QueueChange {
            paused: Some(chance(rng, 400)),
            retention_count: Some(knobs.retention_count),
            retention_ms: Some(knobs.retention_ms),
            // For follow-ups and what schedules submit; others name their own.
            max_attempts: chance(rng, 300).then(|| rng.u16(1..=6)),
            ttl_ms: chance(rng, 300).then_some(knobs.ttl_ms as u32),
            backoff: chance(rng, 300).then(|| Backoff { base_ms: 20, cap_ms: rng.u32(20..2_000) }),
            timeout_ms: chance(rng, 150).then_some(3 * knobs.ttl_ms as u32),
            ..QueueChange::default()
        };
        // Only what every node understands: a change that nobody takes would be sent for ever.
        if world.level() > 0 {
            change.dead_max = Some(knobs.dead_max);
            change.dead_retention_ms = Some(knobs.dead_retention_ms);
            change.jitter_permille = chance(rng, 500).then(|| rng.u16(0..=500));
        }
        let queue = some_queue(&mut self.rng);
        self.order(0, Command::SetQueue(SetQueue { queue, change, expected_version: None }))
    }

    /// A retry or drop of a task, old or new.
    fn revision(&mut self, world: &World) -> Order {
        self.count += 1;
        let known = &world.clients.submitted;
        let id = match known.len() {
            0 => TaskId::parse("none").unwrap_or_else(|error| panic!("task id: {error}")),
            count => known[self.rng.usize(count.saturating_sub(60)..count)].clone(),
        };
        let command = match chance(&mut self.rng, 750) {
            true => Command::Retry(Retry { id }),
            false => Command::Drop(DropTask { id }),
        };
        self.order(0, command)
    }

    /// One step of a sweep in every shard, as a node does it for a client.
    fn sweeps(&mut self, world: &World) -> Vec<Order> {
        self.count += 1;
        let queue = some_queue(&mut self.rng);
        let action = *pick(&mut self.rng, &SweepAction::ALL);
        let step = |shard: u16| {
            let sweep = Sweep { shard, queue: queue.clone(), action, from: 0 };
            self.order(u32::from(shard), Command::Sweep(sweep))
        };
        (0..world.shard_count()).map(step).collect()
    }

    /// Rules out a request of this client, whatever became of it; or one that is sent only afterwards, as a client's
    /// proxy may do that held it back.
    fn voids(&mut self, world: &World) -> Vec<Order> {
        let old = self.rng.usize(0..self.old.len());
        if chance(&mut self.rng, 500) {
            self.old[old] = self.submissions(world);
        }
        let Some(key) = self.old[old].first().and_then(|order| order.request.clone()) else {
            return self.submissions(world);
        };
        let void = |shard: u16| {
            let command = Command::Void(Void { shard, request: key.id.clone() });
            Order { namespace: namespace(), request: None, command }
        };
        (0..world.shard_count()).map(void).collect()
    }

    /// An old request id with another body: it must be refused, or be the first body's own.
    fn misuse(&mut self) -> Vec<Order> {
        let old = self.rng.usize(0..self.old.len());
        let mut orders = self.old[old].clone();
        for order in &mut orders {
            if let Command::Enqueue(task) = &mut order.command {
                task.priority = Some(task.priority.map_or(9, |priority| 9 - priority));
            }
        }
        orders
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        open: &OpenCall,
        end: CallEnd,
    ) -> Verdict {
        let Request::Write(orders) = &open.request else {
            return Ok(());
        };
        let settled = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => self.read(world, orders, &outcomes)?,
            CallEnd::Answered(_) => {
                world.tally.unavailable += 1;
                for order in orders {
                    let honest = world.clients.denied(order);
                    honest_outcome::check(order, honest)?;
                }
                false
            }
            CallEnd::NotSent => {
                world.tally.unavailable += 1;
                false
            }
            CallEnd::Lost => {
                for order in orders {
                    world.tally.unknown += 1;
                    world.clients.lost(order);
                }
                false
            }
        };
        let patient = world.phase == Phase::Liveness || self.tries < TRIES_MAX;
        let gives_up = world.phase == Phase::Safety && chance(&mut self.rng, 100);
        if settled || !patient || gives_up {
            self.current = None;
            let think_us = log_uniform(&mut self.rng, 100, 5_000) * 1_000;
            world.schedule.after(think_us, Event::Actor(me, Step::Next));
        } else {
            let again_us = log_uniform(&mut self.rng, 20, 1_500) * 1_000;
            world.schedule.after(again_us, Event::Actor(me, Step::Again(0)));
        }
        Ok(())
    }

    /// Reads the outcomes; true when none is left open.
    fn read(
        &mut self,
        world: &mut World,
        orders: &[Order],
        outcomes: &[Outcome],
    ) -> Result<bool, crate::check::Violation> {
        let mut settled = true;
        for (order, outcome) in orders.iter().zip(outcomes) {
            match outcome {
                Outcome::Reply { reply, .. } => {
                    match reply {
                        Reply::Refused { code } => {
                            world.tally.refused += 1;
                            if *code == RefusalCode::RequestVoided {
                                world.mark(Mark::VoidedRefused);
                            }
                        }
                        _ => world.tally.acked += 1,
                    }
                    if let (Command::SetQueue(set), Reply::QueueSet { .. }) =
                        (&order.command, reply)
                        && set.change.paused == Some(true)
                    {
                        world.mark(Mark::QueuePaused);
                    }
                    world.clients.told(order, reply);
                }
                Outcome::Unknown => {
                    world.tally.unknown += 1;
                    world.clients.lost(order);
                    settled = false;
                }
                Outcome::Unavailable(_) => {
                    world.tally.unavailable += 1;
                    let honest = world.clients.denied(order);
                    honest_outcome::check(order, honest)?;
                    settled = false;
                }
            }
        }
        Ok(settled)
    }
}
