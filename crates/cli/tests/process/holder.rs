//! A worker that holds claims and renews them, and can tell whether one that ended was ended too early (Q6).
//!
//! Promise: a claim counts as ended too early only if less than its ttl had passed since the last renewal that was
//! confirmed was *sent*, so that a slow machine is never blamed on the product.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::v1::{
    ClaimRequest, ClaimedTask, CompleteItem, CompleteRequest, NewTask, Number, OutcomeKind,
    RenewItem, RenewRequest,
};
use tokio::task::JoinHandle;

use crate::wait::until;

/// Life of every claim here. Faults that shall tempt a leader to expire something last longer.
pub const TTL: Duration = Duration::from_secs(5);
/// Pause between renewals.
const PAUSE: Duration = Duration::from_millis(200);
/// One call lasts no longer, so that there is time for another within a ttl.
const CALL: Duration = Duration::from_secs(2);

/// Claims, when the last good renewal of each was sent; absent once it has rightly ended.
type Held = BTreeMap<String, (ClaimedTask, Option<Instant>)>;

/// A worker in the background.
pub struct Holder {
    name: String,
    client: Client,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    renewing: JoinHandle<Held>,
}

impl Holder {
    /// Makes so many tasks in a queue of its own, claims them, and renews from now on by way of these nodes.
    pub async fn start(urls: &[String], name: &str, count: usize) -> Holder {
        let client = Client::new(urls).expect("urls").with_timeout(CALL);
        let ttl_ms = Some(TTL.as_millis() as u32);
        for number in 0..count {
            let (id, queue) = (format!("{name}-{number}"), Some(name.to_owned()));
            let task = NewTask { id: Some(id.clone()), queue, ttl_ms, ..NewTask::default() };
            until("a task is made", || async {
                client.enqueue_as(&id, vec![task.clone()]).await.ok()
            })
            .await;
        }
        let mut held = Held::new();
        while held.len() < count {
            let sent = Instant::now();
            let claims = client.claim(&wish(name, count)).await.map_or(Vec::new(), |all| all.tasks);
            held.extend(claims.into_iter().map(|task| (task.id.clone(), (task, Some(sent)))));
        }
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let renewing = tokio::spawn(renew_until_stopped(
            (name.to_owned(), client.clone()),
            held,
            stop.clone(),
            rounds.clone(),
        ));
        Holder { name: name.to_owned(), client, stop, rounds, renewing }
    }

    /// Waits until all claims were renewed so many times more.
    pub async fn renewed(&self, more: u64) {
        let goal = self.rounds.load(Ordering::Relaxed) + more;
        until("claims are renewed", || async {
            (self.rounds.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await
    }

    /// Completes what is held: every claim that was not rightly ended must still be good, and nobody else had the task.
    pub async fn complete_all(self) {
        self.stop.store(true, Ordering::Relaxed);
        let held = self.renewing.await.expect("no claim was ended too early");
        for (id, (task, renewed)) in held {
            let Some(renewed) = renewed else { continue };
            let outcome = until("a task is completed", || async {
                let answer = self.client.complete(&done(&self.name, &task)).await.ok()?;
                Some(answer.tasks[0].outcome).filter(|outcome| outcome.is_settled())
            })
            .await;
            let in_time = renewed.elapsed() < TTL;
            assert!(outcome == OutcomeKind::Completed || !in_time, "{id}: {outcome:?}");
            if outcome == OutcomeKind::Completed {
                let seen = until("the task is read", || async { self.client.task(&id).await.ok() });
                assert_eq!(seen.await.attempts_begun, task.attempt, "{id} was handed out again");
            }
        }
    }
}

async fn renew_until_stopped(
    (name, client): (String, Client),
    mut held: Held,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
) -> Held {
    while !stop.load(Ordering::Relaxed) {
        let alive = held.values().filter(|(_, renewed)| renewed.is_some());
        let tasks: Vec<RenewItem> = alive
            .map(|(task, _)| RenewItem { id: task.id.clone(), fence: task.fence, progress: None })
            .collect();
        let ids: Vec<String> = tasks.iter().map(|item| item.id.clone()).collect();
        let sent = Instant::now();
        let request = RenewRequest { worker: name.clone(), session: None, tasks };
        let outcomes = match ids.is_empty() {
            true => Vec::new(),
            false => client.renew(&request).await.map_or(Vec::new(), |answer| answer.tasks),
        };
        let mut all = outcomes.len() == ids.len();
        for (id, outcome) in ids.iter().zip(outcomes) {
            let (_, renewed) = held.get_mut(id).expect("it is held");
            let last = renewed.expect("it is alive");
            match outcome.outcome {
                OutcomeKind::Renewed => *renewed = Some(sent),
                kind if kind.is_settled() => {
                    let silent = last.elapsed();
                    assert!(silent >= TTL, "{id} was ended {silent:?} after its renewal: {kind:?}");
                    eprintln!("this machine was too slow to renew {id} in time");
                    *renewed = None;
                }
                _ => all = false,
            }
        }
        rounds.fetch_add(u64::from(all), Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
    held
}

fn wish(name: &str, count: usize) -> ClaimRequest {
    ClaimRequest {
        holds: Vec::new(),
        worker: name.to_owned(),
        session: Number(1),
        queues: vec![name.to_owned()],
        count_max: count as u32,
        wait_ms: 500,
        labels: BTreeMap::new(),
    }
}

/// The report that a task was done.
pub fn done(name: &str, task: &ClaimedTask) -> CompleteRequest {
    let item = CompleteItem {
        id: task.id.clone(),
        fence: task.fence,
        result: None,
        result_base64: None,
        then: Vec::new(),
        result_bytes: None,
        outputs: Vec::new(),
    };
    CompleteRequest { worker: name.to_owned(), tasks: vec![item], claim: None }
}
