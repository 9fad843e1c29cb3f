//! Client calls on their way: to a node, through it, and back. A call ends once: answered, never sent, or lost.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_replica::call::{Answer, Call, CallId, Request, Routing};
use ikada_replica::output::Input;
use ikada_state::{Lsn, ShardId};

use super::{Event, World};
use crate::check::Verdict;
use crate::draw::chance;

/// A call under way.
#[derive(Debug)]
pub struct OpenCall {
    /// Who asked.
    pub actor: usize,
    /// Which node was asked.
    pub node: NodeId,
    /// Which of its processes.
    pub generation: u64,
    /// What was asked.
    pub request: Request,
    /// When.
    pub sent_us: u64,
    /// What a linearizable read must include: all that was acknowledged when it was sent.
    pub owed: Vec<(ShardId, Lsn)>,
    /// Whether it reached a process.
    pub reached: bool,
}

/// All calls under way.
#[derive(Debug, Default)]
pub struct Calls {
    next: CallId,
    /// By id.
    pub open: BTreeMap<CallId, OpenCall>,
}

/// How a call ended for its client.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one at a time, moved once
pub enum CallEnd {
    /// The node said this.
    Answered(Answer),
    /// It reached nobody.
    NotSent,
    /// It reached a node and no answer came back.
    Lost,
}

impl World {
    /// Sends a call to a node.
    pub fn ask(&mut self, actor: usize, node: NodeId, request: Request, timeout_ms: u64) -> CallId {
        self.calls.next += 1;
        let id = self.calls.next;
        let generation = self.machines.get(&node).map_or(0, |machine| machine.generation);
        let owed = match &request {
            Request::Read(..) => self.watch.acknowledged.all(),
            _ => Vec::new(),
        };
        let sent_us = self.now_us();
        let call = Call { id, timeout_ms, routing: Routing::Forward, request: request.clone() };
        let open = OpenCall { actor, node, generation, request, sent_us, owed, reached: false };
        self.calls.open.insert(id, open);
        let delay_us = self.rng.u64(50..1_000);
        self.schedule.after(delay_us, Event::Call(node, generation, Box::new(call)));
        self.schedule.after((timeout_ms + 3_000) * 1_000, Event::Patience(id));
        id
    }

    pub(super) fn call_arrives(&mut self, node: NodeId, generation: u64, call: Call) {
        let up = self.machines.get(&node).is_some_and(|m| m.is_up() && m.generation == generation);
        if !up {
            self.schedule.after(100, Event::Patience(call.id));
            return;
        }
        if let Some(open) = self.calls.open.get_mut(&call.id) {
            open.reached = true;
        }
        self.note(node, "call", (call.id, 0), |_| {});
        self.input(node, generation, Input::Call(call));
    }

    /// A node answers: the answer is checked as it leaves, and may get lost on its way.
    pub(super) fn answered(&mut self, call: CallId, answer: Answer) -> Verdict {
        self.check_answer(call, &answer)?;
        if chance(&mut self.rng, self.plan.faults.wires.loss_permille / 10) && !self.is_calm() {
            return Ok(());
        }
        let delay_us = self.rng.u64(50..1_000);
        self.schedule.after(delay_us, Event::Answer(call, Box::new(answer)));
        Ok(())
    }

    fn is_calm(&self) -> bool {
        self.phase == super::Phase::Liveness
    }

    pub(super) fn answer_arrives(&mut self, call: CallId, answer: Answer) -> Verdict {
        let Some(open) = self.calls.open.remove(&call) else {
            return Ok(());
        };
        self.note(open.node, "answer", (call, 0), |text| {
            use std::fmt::Write as _;
            let _ = write!(text, "{answer:?}");
            crate::workload::shorten(text);
        });
        self.call_ended(call, &open, CallEnd::Answered(answer))
    }

    pub(super) fn patience_ends(&mut self, call: CallId) -> Verdict {
        let Some(open) = self.calls.open.remove(&call) else {
            return Ok(());
        };
        let end = if open.reached { CallEnd::Lost } else { CallEnd::NotSent };
        self.note(open.node, "no-answer", (call, u64::from(open.reached)), |_| {});
        if open.reached {
            self.input(open.node, open.generation, Input::CallGone(call));
        }
        self.call_ended(call, &open, end)
    }

    fn call_ended(&mut self, call: CallId, open: &OpenCall, end: CallEnd) -> Verdict {
        self.tally.operations += 1;
        let Some(mut actor) = self.actors.get_mut(open.actor).and_then(Option::take) else {
            return Ok(());
        };
        let verdict = actor.ended(self, open.actor, call, open, end);
        self.actors[open.actor] = Some(actor);
        verdict
    }

    /// An actor does its next step.
    pub(super) fn act(&mut self, actor: usize, step: crate::workload::Step) -> Verdict {
        let Some(mut taken) = self.actors.get_mut(actor).and_then(Option::take) else {
            return Ok(());
        };
        let verdict = taken.step(self, actor, step);
        self.actors[actor] = Some(taken);
        verdict
    }

    /// A process died: its clients see their connections reset.
    pub(super) fn calls_lost(&mut self, node: NodeId, generation: u64) {
        let lost: Vec<CallId> = self
            .calls
            .open
            .iter()
            .filter(|(_, open)| open.node == node && open.generation == generation)
            .map(|(call, _)| *call)
            .collect();
        for call in lost {
            let delay_us = self.rng.u64(50..2_000);
            self.schedule.after(delay_us, Event::Patience(call));
        }
    }
}
