//! Workers that hold claims and renew them, whatever else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{ClaimRequest, NewTask, Number, RenewItem, RenewRequest};
use tokio::task::JoinSet;

use super::speak::Line;
use crate::failure::Failure;

/// Workers, and claims of each.
const WORKERS: usize = 20;
const CLAIMS: usize = 5;
const EVERY: Duration = Duration::from_millis(250);
/// A renewal that takes longer has failed: a claim would be in danger.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Counts {
    stop: AtomicBool,
    renewed: AtomicU64,
    failed: AtomicU64,
}

/// Renewals under way.
pub(super) struct Renewals {
    counts: Arc<Counts>,
    workers: JoinSet<()>,
}

impl Renewals {
    /// Has workers claim tasks and renew them from now on.
    pub(super) async fn start(client: &Client, urls: &[String]) -> Result<Renewals, Failure> {
        let task = NewTask { queue: Some("held".to_owned()), ..NewTask::default() };
        client.enqueue(vec![task; WORKERS * CLAIMS]).await?;
        let (counts, mut workers) = (Arc::new(Counts::default()), JoinSet::new());
        for number in 0..WORKERS {
            let worker = format!("holder-{number}");
            let mut held = Vec::new();
            while held.len() < CLAIMS {
                let claim = ClaimRequest {
                    holds: Vec::new(),
                    worker: worker.clone(),
                    session: Number(1),
                    queues: vec!["held".to_owned()],
                    labels: Default::default(),
                    count_max: (CLAIMS - held.len()) as u32,
                    wait_ms: 1_000,
                };
                let claimed = client.claim(&claim).await?.tasks.into_iter();
                held.extend(claimed.map(|task| RenewItem {
                    id: task.id,
                    fence: task.fence,
                    progress: None,
                }));
            }
            let body = RenewRequest { worker, session: None, tasks: held };
            let body = serde_json::to_vec(&body);
            let body = body.map_err(|error| Failure::failed(format!("renewal: {error}")))?;
            let host = urls[number % urls.len()].trim_start_matches("http://").to_owned();
            workers.spawn(renew(host, body, counts.clone()));
        }
        Ok(Renewals { counts, workers })
    }

    /// Ends; gives how many claims were renewed and how many were not.
    pub(super) async fn stop(mut self) -> (u64, u64) {
        self.counts.stop.store(true, Ordering::Relaxed);
        while self.workers.join_next().await.is_some() {}
        (self.counts.renewed.load(Ordering::Relaxed), self.counts.failed.load(Ordering::Relaxed))
    }
}

async fn renew(host: String, body: Vec<u8>, counts: Arc<Counts>) {
    let mut line = None;
    while !counts.stop.load(Ordering::Relaxed) {
        tokio::time::sleep(EVERY).await;
        let mut open = match line.take() {
            Some(open) => open,
            None => match Line::open(&host).await {
                Ok(open) => open,
                Err(_) => {
                    counts.failed.fetch_add(CLAIMS as u64, Ordering::Relaxed);
                    continue;
                }
            },
        };
        let heard = open.call("POST", "/v1/tasks/renew", &body, PATIENCE, true).await;
        let renewed = heard.as_ref().map_or(0, |heard| {
            String::from_utf8_lossy(&heard.body).matches("\"renewed\"").count().min(CLAIMS)
        });
        counts.renewed.fetch_add(renewed as u64, Ordering::Relaxed);
        counts.failed.fetch_add((CLAIMS - renewed) as u64, Ordering::Relaxed);
        line = heard.is_ok().then_some(open);
    }
}
