//! Submitters, workers and readers, each noting what it asked and heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{
    ClaimRequest, CompleteItem, CompleteRequest, NewTask, Number, OutcomeKind, QueueSettingsBody,
    TaskStateName,
};
use tokio::task::JoinHandle;

use super::history::{History, Kind, Seen};
use crate::failure::Failure;

/// Claims live so long: short, so that dead workers are noticed during a run.
const TTL_MS: u32 = 2_000;
/// Workers.
const WORKERS: u64 = 4;
/// Tasks claimed at once.
const CLAIM_MAX: u32 = 8;
/// How long a claim waits for work.
const CLAIM_WAIT_MS: u64 = 500;
/// Of a hundred claimed tasks so many are forgotten, as by a worker that died.
const FORGOTTEN_PERCENT: u64 = 4;
/// And so many are completed after their claim has expired, as by a worker that stood still.
const LATE_PERCENT: u64 = 3;
/// Pause between two looks of a reader.
const READ_EVERY: Duration = Duration::from_millis(20);

/// Makes the queue, so that nothing finished is forgotten before it was counted.
pub(super) async fn prepare(client: &Client, queue: &str) -> Result<(), Failure> {
    let settings = QueueSettingsBody {
        retention_count: Some(1_000_000),
        max_attempts: Some(1_000),
        ttl_ms: Some(TTL_MS),
        ..QueueSettingsBody::default()
    };
    client.set_queue(queue, &settings).await?;
    Ok(())
}

struct Shared {
    queue: String,
    history: History,
    /// Whether no worker dies or comes back late.
    calm: bool,
    submitted: AtomicU64,
    stop_submitting: AtomicBool,
    stop_all: AtomicBool,
}

/// The running workload.
pub(super) struct Load {
    shared: Arc<Shared>,
    submitters: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `rate` submissions per second over all clients, workers and readers.
    pub(super) fn start(clients: &[Client], queue: &str, rate: u32, calm: bool) -> Load {
        let shared = Arc::new(Shared {
            queue: queue.to_owned(),
            history: History::new(),
            calm,
            submitted: AtomicU64::new(0),
            stop_submitting: AtomicBool::new(false),
            stop_all: AtomicBool::new(false),
        });
        let pause = Duration::from_secs(1) * clients.len() as u32 / rate.max(1);
        let mut submitters = Vec::new();
        let mut others = Vec::new();
        for client in clients {
            submitters.push(tokio::spawn(submit(shared.clone(), client.clone(), pause)));
            others.push(tokio::spawn(read(shared.clone(), client.clone())));
        }
        for number in 0..WORKERS {
            let client = clients[number as usize % clients.len()].clone();
            others.push(tokio::spawn(work(shared.clone(), client, number)));
        }
        Load { shared, submitters, others }
    }

    /// Ends submissions, lets workers finish what there is, then ends all. False if work was left at the deadline.
    pub(super) async fn finish(
        self,
        client: &Client,
        patience: Duration,
    ) -> Result<(History, bool), Failure> {
        self.shared.stop_submitting.store(true, Relaxed);
        for submitter in self.submitters {
            let _ = submitter.await;
        }
        let deadline = Instant::now() + patience;
        let drained = loop {
            if let Ok(seen) = client.queue(&self.shared.queue).await {
                let counts = seen.counts;
                if counts.scheduled + counts.ready + counts.claimed == 0 {
                    break true;
                }
            }
            if Instant::now() > deadline {
                break false;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        self.shared.stop_all.store(true, Relaxed);
        for other in self.others {
            let _ = other.await;
        }
        Ok((self.shared.history.clone(), drained))
    }
}

/// When a call ended, unless its outcome is unknown.
fn end_of(history: &History, error: &Error) -> Option<u64> {
    matches!(error, Error::Refused(_)).then(|| history.now_us())
}

async fn submit(shared: Arc<Shared>, client: Client, pause: Duration) {
    let history = &shared.history;
    while !shared.stop_submitting.load(Relaxed) {
        let number = shared.submitted.fetch_add(1, Relaxed);
        let id = format!("{}-{number:07}", shared.queue);
        let task = NewTask {
            id: Some(id.clone()),
            queue: Some(shared.queue.clone()),
            ..NewTask::default()
        };
        let begin_us = history.now_us();
        let settled = match client.enqueue_as(&id, vec![task]).await {
            Ok(answer) => answer.tasks.first().is_some_and(|item| {
                matches!(item.outcome, OutcomeKind::Created | OutcomeKind::Existing)
            }),
            Err(_) => false,
        };
        let end_us = settled.then(|| history.now_us());
        history.note(&id, Kind::Submit, begin_us, end_us);
        tokio::time::sleep(pause).await;
    }
}

async fn read(shared: Arc<Shared>, client: Client) {
    let history = &shared.history;
    while !shared.stop_all.load(Relaxed) {
        tokio::time::sleep(READ_EVERY).await;
        // Around the newest: there the order of events is hardest to keep.
        let newest = shared.submitted.load(Relaxed);
        let number = newest.saturating_sub(fastrand::u64(0..40));
        let id = format!("{}-{number:07}", shared.queue);
        let begin_us = history.now_us();
        let seen = match client.task(&id).await {
            Ok(task) => match task.state {
                TaskStateName::Done => Seen::Done,
                _ => Seen::Open,
            },
            Err(Error::Refused(problem)) if problem.code == "task_not_found" => Seen::Nothing,
            Err(_) => continue,
        };
        history.note(&id, Kind::Read(seen), begin_us, Some(history.now_us()));
    }
}

async fn work(shared: Arc<Shared>, client: Client, number: u64) {
    let history = shared.history.clone();
    let wish = ClaimRequest {
        holds: Vec::new(),
        worker: format!("verify-{number}"),
        session: Number(fastrand::u64(1..)),
        queues: vec![shared.queue.clone()],
        count_max: CLAIM_MAX,
        wait_ms: CLAIM_WAIT_MS,
        labels: Default::default(),
    };
    let mut late = Vec::new();
    while !shared.stop_all.load(Relaxed) {
        let begin_us = history.now_us();
        let Ok(answer) = client.claim(&wish).await else { continue };
        let end_us = Some(history.now_us());
        let mut now = Vec::new();
        for task in answer.tasks {
            history.note(&task.id, Kind::Grant(task.fence.0), begin_us, end_us);
            let dice = if shared.calm { 99 } else { fastrand::u64(0..100) };
            match dice {
                dice if dice < FORGOTTEN_PERCENT => {}
                dice if dice < FORGOTTEN_PERCENT + LATE_PERCENT => {
                    let pause = Duration::from_millis(u64::from(TTL_MS) * 3 / 2);
                    let (client, history, worker) =
                        (client.clone(), history.clone(), wish.worker.clone());
                    late.push(tokio::spawn(async move {
                        tokio::time::sleep(pause).await;
                        complete(&client, &history, &worker, vec![(task.id, task.fence)]).await;
                    }));
                }
                _ => now.push((task.id, task.fence)),
            }
        }
        if !now.is_empty() {
            complete(&client, &history, &wish.worker, now).await;
        }
    }
    for zombie in late {
        let _ = zombie.await;
    }
}

async fn complete(client: &Client, history: &History, worker: &str, tasks: Vec<(String, Number)>) {
    let item = |(id, fence): &(String, Number)| CompleteItem {
        id: id.clone(),
        fence: *fence,
        result: None,
        result_base64: None,
        then: Vec::new(),
        outputs: Vec::new(),
        result_bytes: None,
    };
    let items = tasks.iter().map(item).collect();
    let request = CompleteRequest { worker: worker.to_owned(), tasks: items, claim: None };
    let begin_us = history.now_us();
    let answer = client.complete(&request).await;
    let now_us = history.now_us();
    for (place, (id, fence)) in tasks.iter().enumerate() {
        let (accepted, end_us) = match &answer {
            Ok(list) => match list.tasks.get(place).map(|item| item.outcome) {
                Some(OutcomeKind::Completed) => (true, Some(now_us)),
                Some(OutcomeKind::Refused) => (false, Some(now_us)),
                _ => (true, None),
            },
            Err(error) => (true, end_of(history, error)),
        };
        history.note(id, Kind::Complete(fence.0, accepted), begin_us, end_us);
    }
}
