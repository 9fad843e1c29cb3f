//! Sending orders, and what became of each.

use ikada_api::Problem;
use ikada_api::state::{FailNext, Lsn, Order, RefusalCode, Reply as StateReply, ShardId};
use ikada_api::v1::{ItemOutcome, OutcomeKind, Position};
use ikada_replica::call::{Answer, Outcome, Request};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// The status of what there is no room for now.
const TOO_MANY: u16 = 429;

/// Outcomes of a write, and where they were written.
#[derive(Debug)]
pub(in crate::http) struct Written {
    pub(in crate::http) items: Vec<ItemOutcome>,
    pub(in crate::http) positions: Vec<(ShardId, Lsn)>,
}

/// One item of a request: an order, or what is wrong with it.
pub(in crate::http) struct Item {
    /// The task's handle; empty when the item could not be read that far.
    pub(in crate::http) id: String,
    pub(in crate::http) order: Result<Order, Problem>,
}

/// A write under way: what is asked of the node, and what is known of each item already.
pub(in crate::http) struct Writing {
    /// The orders of the good items; sent unless there are none.
    pub(in crate::http) orders: Vec<Order>,
    asked: usize,
    shown: Vec<ItemOutcome>,
}

impl Writing {
    /// Sorts good items from bad ones: a bad item is refused alone and spoils nothing else.
    pub(in crate::http) fn prepare(items: Vec<Item>) -> Writing {
        let (mut orders, mut shown) =
            (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for Item { id, order } in items {
            match order {
                Ok(order) => {
                    orders.push(order);
                    shown.push(blank(id, OutcomeKind::Unknown));
                }
                Err(problem) if problem.status == TOO_MANY => {
                    // Time may lift it: callers send it again.
                    let unavailable = blank(id, OutcomeKind::Unavailable);
                    shown.push(ItemOutcome { problem: Some(Box::new(problem)), ..unavailable });
                }
                Err(problem) => shown.push(refused(id, problem)),
            }
        }
        Writing { asked: orders.len(), orders, shown }
    }

    /// Nothing had to be asked.
    pub(in crate::http) fn finish_unasked(self) -> Written {
        Written { items: self.shown, positions: Vec::new() }
    }

    /// What became of each item. `request` is the key to ask about. When not one item was decided, the whole request is
    /// answered as unknown or unavailable; otherwise each item speaks for itself.
    pub(in crate::http) fn finish(
        mut self,
        answer: Answer,
        request: Option<&str>,
    ) -> Result<Written, Stop> {
        let Answer::Written(outcomes) = answer else {
            return Err(mismatch("write"));
        };
        if outcomes.len() != self.asked {
            return Err(mismatch("write"));
        }
        let decided = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Reply { .. }));
        if !decided && self.asked == self.shown.len() {
            return Err(undecided(&outcomes, request));
        }
        let mut positions = Vec::new();
        let open = self.shown.iter_mut().filter(|item| item.problem.is_none());
        for (outcome, item) in outcomes.into_iter().zip(open) {
            if let Outcome::Reply { shard, lsn, .. } = &outcome {
                positions.push((*shard, *lsn));
            }
            *item = show_outcome(outcome, std::mem::take(&mut item.id), request);
        }
        Ok(Written { items: self.shown, positions })
    }
}

/// Sends the orders of the good items and waits for what becomes of them.
pub(in crate::http) async fn write<D: Door>(
    app: &App<D>,
    context: &Context,
    items: Vec<Item>,
    request: Option<&str>,
) -> Result<Written, Stop> {
    let mut writing = Writing::prepare(items);
    let orders = std::mem::take(&mut writing.orders);
    if orders.is_empty() {
        return Ok(writing.finish_unasked());
    }
    let answer = call(app, context, Request::Write(orders), context.routing).await?;
    writing.finish(answer, request)
}

fn blank(id: String, outcome: OutcomeKind) -> ItemOutcome {
    ItemOutcome { id, outcome, lsn: None, ttl_ms: None, retry_at_ms: None, problem: None }
}

/// The outcome of an item that was not sent. What is only not to be had now may come again.
pub(in crate::http) fn refused(id: String, problem: Problem) -> ItemOutcome {
    let kind = if problem.status == 503 { OutcomeKind::Unavailable } else { OutcomeKind::Refused };
    ItemOutcome { problem: Some(Box::new(problem)), ..blank(id, kind) }
}

/// One open outcome makes the whole open.
fn undecided(outcomes: &[Outcome], request: Option<&str>) -> Stop {
    let unavailable = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Unavailable(reason) => Some(reason),
        _ => None,
    });
    let open = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Unknown));
    match unavailable {
        Some(reason) if !open => problems::unavailable(reason).into(),
        _ => problems::unknown(request).into(),
    }
}

fn show_outcome(outcome: Outcome, id: String, request: Option<&str>) -> ItemOutcome {
    let blank = |outcome| blank(id, outcome);
    match outcome {
        Outcome::Reply { reply, shard, lsn } => {
            let (kind, retry_at_ms, problem) = show_reply(&reply);
            ItemOutcome {
                lsn: Some(Position { shard, lsn }.to_string()),
                retry_at_ms,
                problem: problem.map(Box::new),
                ..blank(kind)
            }
        }
        Outcome::Unknown => ItemOutcome {
            problem: Some(Box::new(problems::unknown(request))),
            ..blank(OutcomeKind::Unknown)
        },
        Outcome::Unavailable(reason) => ItemOutcome {
            problem: Some(Box::new(problems::unavailable(&reason))),
            ..blank(OutcomeKind::Unavailable)
        },
    }
}

fn show_reply(reply: &StateReply) -> (OutcomeKind, Option<u64>, Option<ikada_api::Problem>) {
    match reply {
        StateReply::Enqueued { created: true, .. } => (OutcomeKind::Created, None, None),
        StateReply::Enqueued { created: false, .. } => (OutcomeKind::Existing, None, None),
        StateReply::Completed => (OutcomeKind::Completed, None, None),
        StateReply::Failed { next: FailNext::Ready } => (OutcomeKind::Retrying, None, None),
        StateReply::Failed { next: FailNext::Scheduled { at_ms } } => {
            (OutcomeKind::Retrying, Some(*at_ms), None)
        }
        StateReply::Failed { next: FailNext::Dead } => (OutcomeKind::Dead, None, None),
        StateReply::Cancelled => (OutcomeKind::Cancelled, None, None),
        StateReply::QueueSet { .. }
        | StateReply::QuotaSet { .. }
        | StateReply::ScheduleSet { .. }
        | StateReply::JobSubmitted { .. }
        | StateReply::JobCancelled
        | StateReply::Growing { .. }
        | StateReply::ObjectPut { .. }
        | StateReply::TokenAdded { .. } => (OutcomeKind::Stored, None, None),
        StateReply::ScheduleDeleted
        | StateReply::LeaseReleased
        | StateReply::WorkerDraining
        | StateReply::WorkerGone
        | StateReply::TokenRevoked
        | StateReply::ObjectDeleted { .. } => (OutcomeKind::Dropped, None, None),
        StateReply::Retried => (OutcomeKind::Retried, None, None),
        StateReply::Dropped => (OutcomeKind::Dropped, None, None),
        // No route sends these orders; should one come back, it is a defect and says so.
        StateReply::Claimed { .. }
        | StateReply::Expired { .. }
        | StateReply::Unclaimed
        | StateReply::Delivered { .. }
        | StateReply::Acked
        | StateReply::MembersSet
        | StateReply::Swept { .. }
        | StateReply::Voided
        | StateReply::Fired { .. }
        | StateReply::Collected
        | StateReply::LeaseGranted { .. }
        | StateReply::LeaseWaiting { .. }
        | StateReply::LeaseExpired
        | StateReply::WorkerRegistered
        | StateReply::ChangeBegun { .. }
        | StateReply::ChangeSettled
        | StateReply::MemberSteered
        | StateReply::LevelRaised
        | StateReply::DeadKept
        | StateReply::ElectionsTuned
        | StateReply::EpochRaised => (OutcomeKind::Refused, None, Some(problems::internal())),
        StateReply::Refused { code } => show_refusal(*code),
    }
}

/// A refusal that time may lift counts as unavailable, so that callers send it again.
pub(in crate::http) fn show_refusal(
    code: RefusalCode,
) -> (OutcomeKind, Option<u64>, Option<ikada_api::Problem>) {
    let kind = if code.is_transient() { OutcomeKind::Unavailable } else { OutcomeKind::Refused };
    (kind, None, Some(problems::refusal(code)))
}

impl Written {
    /// The only item of a request for one thing; a refusal becomes the answer to the request.
    pub(in crate::http) fn only(self) -> Result<(ItemOutcome, Vec<(ShardId, Lsn)>), Stop> {
        let Some(mut item) = self.items.into_iter().next() else {
            return Err(mismatch("write"));
        };
        match item.problem.take() {
            Some(problem) => Err(Stop::Problem(problem)),
            None => Ok((item, self.positions)),
        }
    }
}
