//! One who wants leases: takes them or waits for them, keeps them for a while, gives them back or falls silent.

use fastrand::Rng;
use ikada_replica::call::{Answer, LeaseCall, Outcome, RenewOutcome, Request};
use ikada_state::{
    AcquireLease, BoundTask, Command, Fence, HolderName, LeaseKey, LeaseName, Order, ReleaseLease,
    Reply,
};

use super::{Step, namespace, some_door};
use crate::check::Verdict;
use crate::draw::{chance, log_uniform, pick};
use crate::marks::Mark;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// Leases that everyone wants.
const LEASES: [&str; 2] = ["lock-a", "lock-b"];

/// One who wants leases.
#[derive(Debug)]
pub struct Leaser {
    rng: Rng,
    number: u64,
    /// Which life this is: a holder that fell silent comes back under another name.
    life: u64,
    wanted: Option<AcquireLease>,
    held: Option<Fence>,
}

impl Leaser {
    /// One of them.
    pub fn new(number: u64, rng: Rng) -> Self {
        Self { rng, number, life: 0, wanted: None, held: None }
    }

    /// Does what comes next.
    pub fn step(&mut self, world: &mut World, me: usize) -> Verdict {
        match (self.wanted.clone(), self.held) {
            (Some(wish), Some(fence)) => self.keep(world, me, wish, fence),
            (Some(wish), None) if world.phase == Phase::Safety => self.ask(world, me, wish),
            (None, _) if world.phase == Phase::Safety => {
                let wish = self.wish(world);
                self.wanted = Some(wish.clone());
                self.ask(world, me, wish);
            }
            // After the healing nobody wants anything; what is held ends by its ttl.
            _ => {}
        }
        Ok(())
    }

    fn wish(&mut self, world: &World) -> AcquireLease {
        let name = LeaseName::parse(pick::<&str>(&mut self.rng, &LEASES));
        let holder = HolderName::parse(&format!("h{}-{}", self.number, self.life));
        let (Ok(name), Ok(holder)) = (name, holder) else {
            panic!("names in the workload are valid");
        };
        let known = &world.clients.submitted;
        let task = (chance(&mut self.rng, 200) && !known.is_empty()).then(|| BoundTask {
            id: known[self.rng.usize(0..known.len())].clone(),
            fence: Fence(self.rng.u64(1..200)),
            shard: 0,
        });
        let ttl_ms = world.plan.knobs.ttl_ms as u32;
        AcquireLease { name, holder, ttl_ms, wait: chance(&mut self.rng, 800), task }
    }

    fn ask(&mut self, world: &mut World, me: usize, wish: AcquireLease) {
        let node = some_door(world, &mut self.rng);
        let wait_ms = if wish.wait { self.rng.u64(1..4_000) } else { 0 };
        let lease = LeaseCall { namespace: namespace(), wish, wait_ms };
        world.ask(me, node, Request::Lease(lease), wait_ms + 2_000);
    }

    /// Renews, gives back, or falls silent.
    fn keep(&mut self, world: &mut World, me: usize, wish: AcquireLease, fence: Fence) {
        let node = some_door(world, &mut self.rng);
        let (name, holder) = (wish.name, wish.holder);
        match self.rng.u8(0..10) {
            0..5 if world.phase == Phase::Safety => {
                let key = (namespace(), name);
                world.ask(me, node, Request::RenewLease { key, holder, fence }, 2_000);
            }
            5..9 => {
                let release = ReleaseLease { name, holder, fence: Some(fence) };
                let command = Command::ReleaseLease(release);
                let order = Order { namespace: namespace(), request: None, command };
                world.ask(me, node, Request::Write(vec![order]), 2_000);
            }
            _ => {
                self.begin_anew();
                world.schedule.after(self.pause_us(), Event::Actor(me, Step::Next));
            }
        }
    }

    fn begin_anew(&mut self) {
        (self.wanted, self.held) = (None, None);
        self.life += 1;
    }

    fn pause_us(&mut self) -> u64 {
        log_uniform(&mut self.rng, 100, 5_000) * 1_000
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        open: &OpenCall,
        end: &CallEnd,
    ) -> Verdict {
        world.schedule.after(self.pause_us(), Event::Actor(me, Step::Next));
        match (&open.request, end) {
            (Request::Lease(call), CallEnd::Answered(Answer::Written(outcomes))) => {
                let key: LeaseKey = (namespace(), call.wish.name.clone());
                match outcomes.first() {
                    Some(Outcome::Reply { reply: Reply::LeaseGranted { fence, .. }, .. }) => {
                        world.mark(Mark::LeaseGranted);
                        self.held = Some(*fence);
                        world.watch.leases.told(&key, *fence, &call.wish.holder)?;
                    }
                    Some(Outcome::Reply { reply: Reply::LeaseWaiting { .. }, .. }) => {}
                    Some(Outcome::Reply { .. }) => self.begin_anew(),
                    _ => {}
                }
            }
            (Request::RenewLease { .. }, CallEnd::Answered(Answer::Renewed(outcomes))) => {
                if matches!(outcomes.first(), Some(RenewOutcome::Refused(_))) {
                    self.begin_anew();
                }
            }
            (Request::Write(_), CallEnd::Answered(Answer::Written(outcomes))) => {
                if matches!(outcomes.first(), Some(Outcome::Reply { .. })) {
                    self.begin_anew();
                }
            }
            _ => {}
        }
        Ok(())
    }
}
