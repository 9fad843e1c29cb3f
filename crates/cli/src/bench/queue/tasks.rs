//! The tasks that are sent, and the consumers that work them off.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ikada_api::Client;
use ikada_api::v1::{
    ClaimRequest, ClaimedTask, CompleteItem, CompleteRequest, NewTask, Number, OutcomeKind,
    RawBytes,
};
use tokio::task::JoinSet;

use crate::failure::Failure;

/// Tasks per claim, as peers' consumers fetch them.
const CLAIM_MAX: u32 = 200;
/// How long an idle consumer waits for work before it looks whether all is done.
const WAIT_MS: u64 = 200;

/// One task with a payload of so many bytes.
pub(in crate::bench) fn task(queue: &str, payload_bytes: usize) -> NewTask {
    let payload_bytes = Some(RawBytes(vec![b'x'; payload_bytes]));
    NewTask { queue: Some(queue.to_owned()), payload_bytes, ..NewTask::default() }
}

/// What consumers report of each task they have settled.
pub(in crate::bench) type OnDone = Arc<dyn Fn(&ClaimedTask) + Send + Sync>;

/// How far a queue has been worked off.
#[derive(Debug)]
pub(super) struct Tally {
    total: u64,
    settled: AtomicU64,
    /// When the last one was settled: consumers that wait for more would make it seem later.
    ended: OnceLock<Instant>,
}

impl Tally {
    pub(super) fn new(total: u64) -> Arc<Tally> {
        Arc::new(Tally { total, settled: AtomicU64::new(0), ended: OnceLock::new() })
    }

    pub(super) fn is_done(&self) -> bool {
        self.settled.load(Ordering::Relaxed) >= self.total
    }

    pub(super) fn add(&self, count: u64) {
        if self.settled.fetch_add(count, Ordering::Relaxed) + count >= self.total {
            self.ended.get_or_init(Instant::now);
        }
    }

    /// When the last one was settled; an error if there were more or fewer.
    pub(super) fn end(&self) -> Result<Instant, Failure> {
        match (self.settled.load(Ordering::Relaxed), self.ended.get()) {
            (count, Some(ended)) if count == self.total => Ok(*ended),
            (count, _) => {
                let total = self.total;
                Err(Failure::failed(format!("{count} tasks were completed, {total} were sent")))
            }
        }
    }
}

/// Claims and completes until `total` tasks of the queue are done; fails if one is refused. Gives when the last was.
pub(in crate::bench) async fn consume(
    client: &Client,
    queue: &str,
    consumers: usize,
    total: u64,
    done: OnDone,
) -> Result<Instant, Failure> {
    let tally = Tally::new(total);
    let mut running = JoinSet::new();
    for number in 0..consumers {
        let (client, queue) = (client.clone(), queue.to_owned());
        let (tally, done) = (tally.clone(), done.clone());
        running.spawn(async move {
            let worker = format!("bench-{number}");
            let mut held = Vec::new();
            while !tally.is_done() || !held.is_empty() {
                // As a worker does, and as peers' clients do: the next tasks are asked for while these are settled.
                let (claimed, settled) = tokio::join!(
                    claim(&client, &queue, &worker),
                    settle(&client, &worker, held, &done, &tally),
                );
                held = claimed?;
                settled?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|error| Failure::failed(format!("a consumer has ended: {error}")))??;
    }
    tally.end()
}

/// One claim; gives nothing if there is nothing for a while.
async fn claim(client: &Client, queue: &str, worker: &str) -> Result<Vec<ClaimedTask>, Failure> {
    let claim = ClaimRequest {
        holds: Vec::new(),
        worker: worker.to_owned(),
        session: Number(1),
        queues: vec![queue.to_owned()],
        labels: Default::default(),
        count_max: CLAIM_MAX,
        wait_ms: WAIT_MS,
    };
    Ok(client.claim(&claim).await?.tasks)
}

/// Completes tasks and counts them.
async fn settle(
    client: &Client,
    worker: &str,
    claimed: Vec<ClaimedTask>,
    done: &OnDone,
    tally: &Tally,
) -> Result<(), Failure> {
    if claimed.is_empty() {
        return Ok(());
    }
    let items = claimed.iter().map(|task| CompleteItem {
        id: task.id.clone(),
        fence: task.fence,
        result: None,
        result_base64: None,
        result_bytes: None,
        then: Vec::new(),
        outputs: Vec::new(),
    });
    let request =
        CompleteRequest { worker: worker.to_owned(), tasks: items.collect(), claim: None };
    let answer = client.complete(&request).await?;
    for (task, item) in claimed.iter().zip(&answer.tasks) {
        if item.outcome != OutcomeKind::Completed {
            return Err(Failure::failed(format!("completing {}: {:?}", task.id, item.outcome)));
        }
        done(task);
    }
    tally.add(claimed.len() as u64);
    Ok(())
}
