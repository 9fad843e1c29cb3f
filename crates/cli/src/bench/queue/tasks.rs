//! The tasks that are sent, and the consumers that work them off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
pub(super) fn task(queue: &str, payload_bytes: usize) -> NewTask {
    let payload_bytes = Some(RawBytes(vec![b'x'; payload_bytes]));
    NewTask { queue: Some(queue.to_owned()), payload_bytes, ..NewTask::default() }
}

/// What consumers report of each task they have settled.
pub(super) type OnDone = Arc<dyn Fn(&ClaimedTask) + Send + Sync>;

/// Claims and completes until `total` tasks of the queue are done; fails if one is refused.
pub(super) async fn consume(
    client: &Client,
    queue: &str,
    consumers: usize,
    total: u64,
    done: OnDone,
) -> Result<(), Failure> {
    let settled = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    for number in 0..consumers {
        let (client, queue) = (client.clone(), queue.to_owned());
        let (settled, done) = (settled.clone(), done.clone());
        running.spawn(async move {
            let worker = format!("bench-{number}");
            while settled.load(Ordering::Relaxed) < total {
                let count = step(&client, &queue, &worker, &done).await?;
                settled.fetch_add(count, Ordering::Relaxed);
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|error| Failure::failed(format!("a consumer has ended: {error}")))??;
    }
    match settled.load(Ordering::Relaxed) {
        count if count == total => Ok(()),
        count => Err(Failure::failed(format!("{count} tasks were completed, {total} were sent"))),
    }
}

/// One claim and its completions; gives how many tasks were settled.
async fn step(client: &Client, queue: &str, worker: &str, done: &OnDone) -> Result<u64, Failure> {
    let claim = ClaimRequest {
        worker: worker.to_owned(),
        session: Number(1),
        queues: vec![queue.to_owned()],
        labels: Default::default(),
        count_max: CLAIM_MAX,
        wait_ms: WAIT_MS,
    };
    let claimed = client.claim(&claim).await?.tasks;
    if claimed.is_empty() {
        return Ok(0);
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
    let request = CompleteRequest { worker: worker.to_owned(), tasks: items.collect() };
    let answer = client.complete(&request).await?;
    for (task, item) in claimed.iter().zip(&answer.tasks) {
        if item.outcome != OutcomeKind::Completed {
            return Err(Failure::failed(format!("completing {}: {:?}", task.id, item.outcome)));
        }
        done(task);
    }
    Ok(claimed.len() as u64)
}
