//! Renewals: claims grouped by shard; leaders answer from memory. A roll call goes to every shard, as a claim that its
//! worker does not know of may be in any.

use std::collections::BTreeMap;

use ikada_state::{Fence, Progress, ShardId, TaskId};

use crate::call::{Answer, CallId, RenewOutcome, Renewal};
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::{Ask, RenewTold, Told};
use crate::replica::Replica;

/// How long a shard without listed claims is tried: an old list says nothing about newer claims.
const ROLL_CALL_MS: u64 = 1_000;

/// The claims of one shard.
#[derive(Default)]
struct Group {
    /// Positions in the call.
    items: Vec<u32>,
    /// What is there.
    claims: Vec<(TaskId, Fence)>,
    /// How far some of them are, by their place in this group.
    progress: Vec<(u32, Progress)>,
}

impl Replica {
    pub(crate) fn open_renew(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        renewal: Renewal,
        now: Now,
    ) {
        let Renewal { namespace, worker, session, claims, progress } = renewal;
        let mut progress: BTreeMap<u32, Progress> = progress.into_iter().collect();
        let missing = claims.len();
        if missing == 0 {
            self.answer(call, Answer::Renewed(Vec::new()));
        } else {
            let kind = OpenKind::Renew { outcomes: vec![None; missing], missing };
            self.calls.insert(call, OpenCall { deadline_ms, kind });
        }
        let mut groups: BTreeMap<ShardId, Group> = BTreeMap::new();
        for (position, claim) in claims.into_iter().enumerate() {
            let shard = self.shard_of_task(&namespace, &claim.0);
            let group = groups.entry(shard).or_default();
            if let Some(progress) = progress.remove(&(position as u32)) {
                group.progress.push((group.claims.len() as u32, progress));
            }
            group.items.push(position as u32);
            group.claims.push(claim);
        }
        if session.is_some() {
            for position in 0..self.seats.len() {
                groups.entry(position as ShardId).or_default();
            }
        }
        let map_version = self.map_version();
        for (shard, Group { items, claims, progress }) in groups {
            let (owner, deadline_ms) = if items.is_empty() {
                (Owner::Nobody, deadline_ms.min(now.mono_ms + ROLL_CALL_MS))
            } else {
                (Owner::Call(call, items), deadline_ms)
            };
            let (namespace, worker) = (namespace.clone(), worker.clone());
            let progress = (!progress.is_empty()).then_some(progress);
            let ask = Ask::Renew { namespace, worker, claims, session, map_version, progress };
            self.open_leg(Leg::new(shard, owner, ask, deadline_ms), now);
        }
    }

    pub(crate) fn renew_told(&mut self, call: CallId, items: &[u32], told: Told) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let OpenKind::Renew { outcomes, missing } = &mut open.kind else {
            return;
        };
        let told = match told {
            Told::Renewed(told) if told.len() == items.len() => told,
            _ => Vec::new(),
        };
        for (position, item) in items.iter().enumerate() {
            let outcome = match told.get(position) {
                Some(RenewTold::Renewed(ttl_ms)) => RenewOutcome::Renewed { ttl_ms: *ttl_ms },
                Some(RenewTold::Refused(code)) => RenewOutcome::Refused(*code),
                None => RenewOutcome::Unknown,
            };
            if outcomes[*item as usize].replace(outcome).is_none() {
                *missing -= 1;
            }
        }
        if *missing == 0 {
            let outcomes = std::mem::take(outcomes).into_iter().flatten().collect();
            self.answer(call, Answer::Renewed(outcomes));
        }
    }
}
