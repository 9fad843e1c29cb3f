//! Claims: a worker's wish goes round the shards until one has work, then waits for a hint.
//!
//! One shard at a time, so that the worker never holds more tasks than it has slots. A shard that may have granted
//! something is asked again with the same request key before any other is tried.

use std::collections::VecDeque;

use ikada_state::{
    Claim, Command, Order, RefusalCode, Reply, RequestKey, Shard, ShardId, WorkerStanding,
};

use crate::call::{Answer, CallId, ClaimCall};
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenClaim, OpenKind};
use crate::output::Now;
use crate::peer::{Ask, Hint, Told};
use crate::replica::Replica;

/// The level that understands what a claim's worker has.
const HOLDS_LEVEL: u32 = 1;
/// So many claims are woken for as many tasks of programs, however many each would take.
const SHARERS_MAX: usize = 16;

impl Replica {
    pub(crate) fn open_claim(&mut self, call: CallId, deadline_ms: u64, wish: ClaimCall, now: Now) {
        let claim = OpenClaim {
            patience_ms: now.mono_ms + wish.wait_ms,
            round: self.claim_round(shard_turn(&wish)),
            asking: false,
            again_ms: 0,
            wish,
        };
        // The call ends by its patience; the deadline also covers a leader that does not answer.
        let deadline_ms = deadline_ms.max(claim.patience_ms);
        self.calls.insert(call, OpenCall { deadline_ms, kind: OpenKind::Claim(Box::new(claim)) });
        self.claim_next(call, now);
    }

    /// All shards, starting at that of the turn.
    fn claim_round(&self, turn: usize) -> VecDeque<ShardId> {
        let count = self.seats.len();
        let first = turn % count.max(1);
        (0..count).map(|step| ((first + step) % count) as ShardId).collect()
    }

    /// Asks the next shard of the round, or parks the claim.
    fn claim_next(&mut self, call: CallId, now: Now) {
        let claim_again_ms = self.config.claim_again_ms;
        let may_hold = self.seats[0].state.level() >= HOLDS_LEVEL;
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let deadline_ms = open.deadline_ms;
        let OpenKind::Claim(claim) = &mut open.kind else {
            return;
        };
        if claim.asking {
            return;
        }
        let Some(shard) = claim.round.pop_front() else {
            claim.again_ms = now.mono_ms + claim_again_ms;
            if claim.patience_ms <= now.mono_ms {
                self.answer(call, Answer::Claimed(Vec::new()));
            }
            return;
        };
        if let Some(refusal) = removed_session(&self.seats[0].state, &claim.wish) {
            return self.answer(call, refusal);
        }
        claim.asking = true;
        let command = Command::Claim(Claim {
            worker: claim.wish.worker.clone(),
            session: claim.wish.session,
            queues: claim.wish.queues.clone(),
            max: claim.wish.count_max,
            labels: claim.wish.labels.clone(),
            share: None,
            holds: claim.wish.holds.clone().filter(|_| may_hold),
        });
        // The shard is the item: a shard remembers one grant per request id.
        let key = RequestKey { id: claim.wish.request.clone(), item: u32::from(shard) };
        let namespace = claim.wish.namespace.clone();
        let order = Order { namespace, request: Some(key), command };
        let owner = Owner::Call(call, Vec::new());
        self.open_leg(Leg::new(shard, owner, Ask::Claim(Box::new(order)), deadline_ms), now);
    }

    pub(crate) fn claim_told(&mut self, call: CallId, shard: ShardId, told: Told, now: Now) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let OpenKind::Claim(claim) = &mut open.kind else {
            return;
        };
        claim.asking = false;
        let reply = match told {
            Told::Replies { replies, .. } => replies.into_iter().next(),
            _ => None,
        };
        if let Some(Reply::Refused { code: RefusalCode::WorkerRemoved }) = reply {
            let refusal = removed(&claim.wish);
            return self.answer(call, refusal);
        }
        if let Some(Reply::Claimed { tasks }) = reply
            && !tasks.is_empty()
        {
            let full = tasks.len() >= claim.wish.count_max as usize;
            let wish = full.then(|| claim.wish.clone());
            self.answer(call, Answer::Claimed(tasks));
            if let Some(wish) = wish {
                // There may be more where this came from: the next parked claim may look there too.
                for queue in wish.queues {
                    let namespace = wish.namespace.clone();
                    self.hinted(&Hint { shard, namespace, queue, ready: 1, program: None }, now);
                }
            }
            return;
        }
        self.claim_next(call, now);
    }

    /// Work is ready: parked claims look at that shard, as many as the work can feed. Where it is for programs each takes
    /// its part, so a few more look, and those first whose workers have the program.
    pub(crate) fn hinted(&mut self, hint: &Hint, now: Now) {
        let mut hungry = hint.ready;
        let mut woken = Vec::new();
        if let Some(program) = hint.program.filter(|program| *program != 0) {
            self.wake_for(hint, Some(program), &mut hungry, &mut woken);
        }
        self.wake_for(hint, None, &mut hungry, &mut woken);
        for call in woken {
            self.claim_next(call, now);
        }
    }

    /// Has parked claims look at a shard; only those whose workers have a program, if one is named.
    fn wake_for(
        &mut self,
        hint: &Hint,
        program: Option<u64>,
        hungry: &mut u64,
        woken: &mut Vec<CallId>,
    ) {
        for (call, open) in &mut self.calls {
            if *hungry == 0 {
                break;
            }
            let OpenKind::Claim(claim) = &mut open.kind else {
                continue;
            };
            let holds = claim.wish.holds.as_deref().unwrap_or_default();
            if program.is_some_and(|program| !holds.contains(&program)) {
                continue;
            }
            let wants = claim.wish.namespace == hint.namespace
                && claim.wish.queues.contains(&hint.queue)
                && !claim.round.contains(&hint.shard);
            if wants && (!claim.asking || claim.round.is_empty()) {
                claim.round.push_back(hint.shard);
                let takes = match hint.program {
                    Some(_) if woken.len() < SHARERS_MAX => 1,
                    _ => u64::from(claim.wish.count_max),
                };
                *hungry = hungry.saturating_sub(takes);
                woken.push(*call);
            }
        }
    }

    /// Parked claims look round again now and then, and end when their patience does.
    pub(crate) fn tend_claims(&mut self, now: Now) {
        let mut due = Vec::new();
        for (call, open) in &mut self.calls {
            let OpenKind::Claim(claim) = &mut open.kind else {
                continue;
            };
            if claim.asking {
                continue;
            }
            if claim.again_ms <= now.mono_ms || claim.patience_ms <= now.mono_ms {
                due.push(*call);
            }
        }
        for call in due {
            self.claim_turn = self.claim_turn.wrapping_add(1);
            let round = self.claim_round(self.claim_turn);
            let Some(OpenCall { kind: OpenKind::Claim(claim), .. }) = self.calls.get_mut(&call)
            else {
                continue;
            };
            if claim.patience_ms > now.mono_ms {
                claim.round = round;
            }
            self.claim_next(call, now);
        }
    }

    /// A shard has a new leader, which knows of no interest: parked claims look there at once.
    pub(crate) fn claims_look_at(&mut self, shard: ShardId, now: Now) {
        let mut woken = Vec::new();
        for (call, open) in &mut self.calls {
            if let OpenKind::Claim(claim) = &mut open.kind
                && !claim.round.contains(&shard)
            {
                claim.round.push_back(shard);
                woken.push(*call);
            }
        }
        for call in woken {
            self.claim_next(call, now);
        }
    }
}

/// Where the first round begins: spread over the shards, and the same for a resend through any node, so that it
/// meets the grant it may have before it is granted another.
fn shard_turn(wish: &ClaimCall) -> usize {
    let fold = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(*byte));
    wish.request.as_str().as_bytes().iter().fold(0, fold) as usize
}

/// The refusal of a claim whose session was removed (B4-19), as far as this node knows. Where it has not heard of it yet,
/// the shards that have reopened the session's claims refuse it.
fn removed_session(state: &Shard, wish: &ClaimCall) -> Option<Answer> {
    let record = state.worker(&(wish.namespace.clone(), wish.worker.clone()))?;
    let is_over = record.session == wish.session && record.standing == WorkerStanding::Removed;
    is_over.then(|| removed(wish))
}

fn removed(wish: &ClaimCall) -> Answer {
    Answer::Refused {
        code: RefusalCode::WorkerRemoved.as_str().to_owned(),
        detail: format!(
            "worker {} was removed, and session {:016x} with it; start it again, with a new session",
            wish.worker, wish.session.0
        ),
    }
}
