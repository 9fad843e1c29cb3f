//! `POST /v1/queues/{name}/retry`, `.../drop` and `.../purge`: one job on many tasks, in bounded steps over all shards.
//!
//! Each step is an order with a key of its own, so that a resend of the whole request finds every step that was done
//! and goes on after it: it gives the same count, and takes nothing that came after its end.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::{
    Command, Lsn, Order, QueueName, Reply as StateReply, RequestId, RequestKey, ShardId, Sweep,
    SweepAction,
};
use ikada_api::v1::SweepAnswer;
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::cluster::shard_map;
use crate::http::dispatch::{call, call_within, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// Pause after a step that no leader could take.
const PAUSE: Duration = Duration::from_millis(50);
/// A key's item is the step's number and its shard in so many bits; there are never more shards than slots.
const SHARD_BITS: u32 = 12;
/// Steps per request and shard; a job that needs more is answered as incomplete.
const STEPS_MAX: u32 = 1 << (31 - SHARD_BITS);

pub(in crate::http) async fn retry<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    sweep(app, context, SweepAction::RetryDead).await
}

pub(in crate::http) async fn drop_all<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let finished = context.query_as("finished", "must be true or false")?.unwrap_or(false);
    let action = if finished { SweepAction::DropFinished } else { SweepAction::DropDead };
    sweep(app, context, action).await
}

pub(in crate::http) async fn purge<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let claimed = context.query_as("claimed", "must be true or false")?.unwrap_or(false);
    let action = if claimed { SweepAction::CancelUnfinished } else { SweepAction::CancelWaiting };
    sweep(app, context, action).await
}

/// How far one shard is.
struct Place {
    shard: ShardId,
    step: u32,
    from: u32,
}

struct Job<'a> {
    context: &'a Context,
    queue: QueueName,
    action: SweepAction,
    request: RequestId,
    open: Vec<Place>,
    count: u64,
    /// Highest number of a step so far.
    steps: u32,
    positions: Vec<(ShardId, Lsn)>,
}

async fn sweep<D: Door>(
    app: &App<D>,
    context: &Context,
    action: SweepAction,
) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let queue =
        parse_name("name", name, QueueName::parse).map_err(|error| problems::bad_field(&error))?;
    check_exists(app, context, &queue).await?;
    let (shards, mut version) = shard_map(app, context).await?;
    let mut job = Job {
        context,
        queue,
        action,
        request: app.request_id(context),
        open: (0..shards).map(|shard| Place { shard, step: 0, from: 0 }).collect(),
        count: 0,
        steps: 0,
        positions: Vec::new(),
    };
    let until = Instant::now() + context.timeout;
    while !job.open.is_empty() && job.open.iter().all(|place| place.step < STEPS_MAX) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if !job.step(app, left).await? {
            tokio::time::sleep(PAUSE.min(left)).await;
        }
        if job.open.is_empty() {
            // Tasks that moved meanwhile may have passed us by: all shards once more.
            let (shards, now) = shard_map(app, context).await?;
            if now != version {
                version = now;
                let step = job.steps + 1;
                job.open = (0..shards).map(|shard| Place { shard, step, from: 0 }).collect();
            }
        }
    }
    job.finish()
}

/// A misspelt queue is told, not swept in vain.
async fn check_exists<D: Door>(
    app: &App<D>,
    context: &Context,
    queue: &QueueName,
) -> Result<(), Stop> {
    let query = Query::Queue(context.namespace.clone(), queue.clone());
    let read = Request::Read(query, Consistency::Linearizable);
    match call(app, context, read, Routing::Forward).await? {
        Answer::View { view: View::Queue(Some(_)), .. } => Ok(()),
        Answer::View { view: View::Queue(None), .. } => {
            Err(problems::not_found("queue_not_found", "queue", queue.as_str()).into())
        }
        _ => Err(mismatch("sweep queue")),
    }
}

impl Job<'_> {
    fn order(&self, place: &Place) -> Order {
        let item = place.step << SHARD_BITS | u32::from(place.shard);
        let (shard, queue) = (place.shard, self.queue.clone());
        Order {
            namespace: self.context.namespace.clone(),
            request: Some(RequestKey { id: self.request.clone(), item }),
            command: Command::Sweep(Sweep { shard, queue, action: self.action, from: place.from }),
        }
    }

    /// One step in every shard that is not done; false when not one was decided.
    async fn step<D: Door>(&mut self, app: &App<D>, left: Duration) -> Result<bool, Stop> {
        let orders = self.open.iter().map(|place| self.order(place)).collect();
        let write = Request::Write(orders);
        let answer = call_within(app, self.context, write, Routing::Forward, left).await?;
        let Answer::Written(outcomes) = answer else {
            return Err(mismatch("sweep queue"));
        };
        let mut decided = false;
        let mut open = Vec::new();
        for (mut place, outcome) in std::mem::take(&mut self.open).into_iter().zip(outcomes) {
            let Outcome::Reply { reply, shard, lsn } = outcome else {
                open.push(place);
                continue;
            };
            decided = true;
            self.steps = self.steps.max(place.step);
            self.positions.push((shard, lsn));
            match reply {
                StateReply::Swept { count, next } => {
                    self.count += u64::from(count);
                    if let Some(from) = next {
                        (place.from, place.step) = (from, place.step + 1);
                        open.push(place);
                    }
                }
                StateReply::Refused { code } => {
                    let mut problem = problems::refusal(code);
                    if self.count > 0 {
                        let detail =
                            format!("{}; {} tasks were changed", problem.detail, self.count);
                        problem.detail = detail.into();
                    }
                    return Err(problem.with_request(self.request.as_str()).into());
                }
                _ => return Err(mismatch("sweep queue")),
            }
        }
        self.open = open;
        Ok(decided)
    }

    fn finish(self) -> Result<Reply, Stop> {
        let complete = self.open.is_empty();
        let answer = SweepAnswer {
            queue: self.queue.to_string(),
            request: self.request.to_string(),
            count: self.count,
            complete,
        };
        let status = if complete { StatusCode::OK } else { StatusCode::ACCEPTED };
        let mut response = show_document(self.context, status, &answer)?;
        add_positions(&mut response, &self.positions);
        Ok(response)
    }
}
