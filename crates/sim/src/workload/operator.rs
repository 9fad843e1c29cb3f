//! An operator: makes schedules, hands leadership over, changes the membership, and after the healing pauses schedules,
//! resumes queues and sends a probe to every shard.

use std::collections::BTreeMap;

use fastrand::Rng;
use ikada_replica::call::{Answer, CallId, Outcome, Request};
use ikada_state::{
    Command, Enqueue, Missed, Order, Overlap, QueueChange, RefusalCode, Reply, RequestId,
    RequestKey, ScheduleName, ScheduleSpec, SetQueue, SetSchedule, ShardId, TaskId, Timing,
};

use super::{QUEUES, Step, namespace, queue, some_door};
use crate::check::Verdict;
use crate::check::schedule_instants::PREFIX;
use crate::draw::pick;
use crate::marks::Mark;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// Schedules of a run.
const SCHEDULES: u64 = 2;

/// The operator.
#[derive(Debug)]
pub struct Operator {
    rng: Rng,
    membership_ms: u64,
    transfer_ms: u64,
    count: u64,
    /// Probes under way: what to send again until it is acknowledged.
    probes: BTreeMap<CallId, (ShardId, Vec<Order>)>,
    /// What to send again a little later.
    unsent: Vec<(ShardId, Vec<Order>)>,
    /// Schedules that run.
    schedules: Vec<(ScheduleName, ScheduleSpec)>,
}

impl Operator {
    /// An operator who changes things at these mean distances; 0 means never.
    pub fn new(rng: Rng, membership_ms: u64, transfer_ms: u64) -> Self {
        Self {
            rng,
            membership_ms,
            transfer_ms,
            count: 0,
            probes: BTreeMap::new(),
            schedules: Vec::new(),
            unsent: Vec::new(),
        }
    }

    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize, step: &Step) -> Verdict {
        match step {
            Step::Transfer => self.transfer(world, me),
            Step::Change => self.change(world, me),
            Step::Probe => self.probe(world, me),
            Step::Next => self.begin_schedules(world, me),
            Step::Again(_) => {
                for (shard, orders) in std::mem::take(&mut self.unsent) {
                    self.send(world, me, shard, orders);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn transfer(&mut self, world: &mut World, me: usize) {
        if world.phase == Phase::Liveness {
            return;
        }
        let shard = self.rng.u16(0..world.plan.shards);
        let to = self.rng.bool().then(|| some_door(world, &mut self.rng));
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Transfer { shard, to }, 2_000);
        let again_us = self.rng.u64(self.transfer_ms * 300..=self.transfer_ms * 1_700);
        world.schedule.after(again_us, Event::Actor(me, Step::Transfer));
    }

    fn change(&mut self, world: &mut World, me: usize) {
        if !world.membership.is_changing() && world.phase == Phase::Safety {
            world.wish_change();
        }
        let distance_us = if let Some(request) = world.next_change() {
            let node = some_door(world, &mut self.rng);
            world.ask(me, node, request, 2_000);
            self.rng.u64(200_000..1_500_000)
        } else if world.phase == Phase::Liveness {
            return;
        } else {
            self.rng.u64(self.membership_ms * 300..=self.membership_ms * 1_700)
        };
        world.schedule.after(distance_us, Event::Actor(me, Step::Change));
    }

    /// Makes a few schedules; they run until the healing.
    fn begin_schedules(&mut self, world: &mut World, me: usize) {
        for number in 0..SCHEDULES {
            let text = format!("{PREFIX}{number}");
            let (Ok(name), Ok(id)) = (ScheduleName::parse(&text), TaskId::parse(&text)) else {
                continue;
            };
            let mut task =
                Enqueue::new(id, queue(pick::<&str>(&mut self.rng, &QUEUES)), &b"tick"[..]);
            task.ttl_ms = Some(world.plan.knobs.ttl_ms as u32);
            let every_ms = self.rng.u64(1_500..=8_000);
            let timing = Timing::Every { every_ms, anchor_ms: self.rng.u64(1..=every_ms) };
            let missed = *pick(&mut self.rng, &[Missed::Skip, Missed::One, Missed::All]);
            let overlap = *pick(&mut self.rng, &[Overlap::Allow, Overlap::Allow, Overlap::Skip]);
            let grace_ms = self.rng.u64(0..=10_000);
            let spec = ScheduleSpec { timing, task, missed, overlap, grace_ms, paused: false };
            self.schedules.push((name.clone(), spec.clone()));
            // A late copy must not revive what was paused meanwhile.
            self.set_schedule(world, me, name, spec, Some(0));
        }
    }

    fn set_schedule(
        &mut self,
        world: &mut World,
        me: usize,
        name: ScheduleName,
        spec: ScheduleSpec,
        expected_version: Option<u64>,
    ) {
        self.count += 1;
        let spec = Some(Box::new(spec));
        let set = SetSchedule { name, spec, paused: None, expected_version };
        let order = self.order(Command::SetSchedule(set));
        self.send(world, me, ShardId::MAX, vec![order]);
    }

    /// Pauses all schedules, so that every task can come to its end.
    fn end_schedules(&mut self, world: &mut World, me: usize) {
        self.probes.clear();
        self.unsent.clear();
        for (name, spec) in std::mem::take(&mut self.schedules) {
            let paused = ScheduleSpec { paused: true, ..spec };
            self.set_schedule(world, me, name, paused, None);
        }
    }

    /// Resumes all queues, and submits one task to every shard.
    fn probe(&mut self, world: &mut World, me: usize) {
        self.end_schedules(world, me);
        for name in QUEUES {
            self.count += 1;
            let change = QueueChange { paused: Some(false), ..QueueChange::default() };
            let set = SetQueue { queue: queue(name), change, expected_version: None };
            let order = self.order(Command::SetQueue(set));
            self.send(world, me, ShardId::MAX, vec![order]);
        }
        for shard in 0..world.plan.shards {
            self.count += 1;
            let id = self.id_in(world, shard);
            let mut task =
                Enqueue::new(id, queue(pick::<&str>(&mut self.rng, &QUEUES)), &b"probe"[..]);
            task.ttl_ms = Some(world.plan.knobs.ttl_ms as u32);
            let order = self.order(Command::Enqueue(task));
            world.probes.insert(shard, (world.now_us(), None));
            self.send(world, me, shard, vec![order]);
        }
    }

    fn order(&self, command: Command) -> Order {
        let text = format!("op-{}", self.count);
        let id = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        Order { namespace: namespace(), request: Some(RequestKey { id, item: 0 }), command }
    }

    fn id_in(&mut self, world: &World, shard: ShardId) -> TaskId {
        loop {
            let text = format!("probe-{}", self.rng.u32(..));
            let id = TaskId::parse(&text).unwrap_or_else(|error| panic!("task id: {error}"));
            if world.shard_of_task(&id) == shard {
                return id;
            }
        }
    }

    fn send(&mut self, world: &mut World, me: usize, shard: ShardId, orders: Vec<Order>) {
        let node = some_door(world, &mut self.rng);
        for order in &orders {
            world.clients.sent(order);
        }
        let call = world.ask(me, node, Request::Write(orders.clone()), 2_000);
        self.probes.insert(call, (shard, orders));
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        call: CallId,
        open: &OpenCall,
        end: &CallEnd,
    ) -> Verdict {
        if let (Request::Change { .. }, CallEnd::Answered(Answer::Refused { .. })) =
            (&open.request, end)
        {
            world.mark(Mark::ChangeRefused);
        }
        let Some((shard, orders)) = self.probes.remove(&call) else {
            return Ok(());
        };
        let done = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => {
                let settled = |outcome: &Outcome| match outcome {
                    Outcome::Reply { reply, .. } => !is_transient(reply),
                    _ => false,
                };
                outcomes.iter().all(settled)
            }
            _ => false,
        };
        if !done && world.phase == Phase::Safety {
            self.unsent.push((shard, orders));
            let again_us = self.rng.u64(300_000..1_500_000);
            world.schedule.after(again_us, Event::Actor(me, Step::Again(0)));
            return Ok(());
        }
        if !done {
            // A shard at its bound decides as it should by saying so. The probe goes on until there is room.
            if is_told_full(end) && world.is_shard_full(shard) {
                world.probe_decided(shard);
            }
            self.send(world, me, shard, orders);
            return Ok(());
        }
        if let CallEnd::Answered(Answer::Written(outcomes)) = end {
            for (order, outcome) in orders.iter().zip(outcomes) {
                if let Outcome::Reply { reply, .. } = outcome {
                    world.clients.told(order, reply);
                }
            }
        }
        world.probe_decided(shard);
        Ok(())
    }
}

/// Whether the leader refused all orders for want of room.
fn is_told_full(end: &CallEnd) -> bool {
    let full = |outcome: &Outcome| {
        let refused = Reply::Refused { code: RefusalCode::QueueFull };
        matches!(outcome, Outcome::Reply { reply, .. } if *reply == refused)
    };
    matches!(end, CallEnd::Answered(Answer::Written(outcomes)) if outcomes.iter().all(full))
}

fn is_transient(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused { code } if code.is_transient())
}
