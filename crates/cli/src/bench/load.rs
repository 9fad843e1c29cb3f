//! A steady stream of writes through all nodes, each under a key of its own, resent under that key until settled.
//!
//! Open loop: a write is begun on time whether or not earlier ones were answered, so that an outage shows in full.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{ClientOptions, Error};
use ikada_api::v1::{NewTask, OutcomeKind, parse_positions};
use tokio::task::{JoinHandle, JoinSet};

use crate::failure::Failure;

/// The queue that is written to.
pub(super) const QUEUE: &str = "bench";
/// A write that is not settled by then counts as unknown.
const WRITE_PATIENCE: Duration = Duration::from_secs(20);
/// Pause before an unsettled item is sent again.
const RESEND_PAUSE: Duration = Duration::from_millis(20);

/// One acknowledged write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    /// When the answer came.
    pub(super) at: Instant,
    /// In which shard, in which term; absent if the answer did not say.
    pub(super) place: Option<(u16, u64)>,
}

/// How the writes ended.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// Acknowledged, by number.
    pub(super) acked: BTreeMap<u64, Ack>,
    /// Neither acknowledged nor refused in time.
    pub(super) unknown: Vec<u64>,
    /// Refused, with the first reason; there should be none.
    pub(super) refused: Vec<(u64, String)>,
}

struct Shared {
    clients: Mutex<Vec<Client>>,
    /// Every client there ever was, for their counts.
    all_clients: Mutex<Vec<Client>>,
    fate: Mutex<Fate>,
    stop: AtomicBool,
}

/// The running load.
pub(super) struct Load {
    shared: Arc<Shared>,
    pacer: JoinHandle<u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id of a write's task, and its request id.
pub(super) fn task_id(number: u64) -> String {
    format!("bench-{number:08}")
}

impl Load {
    /// Begins `rate` writes per second.
    pub(super) fn start(urls: &[String], rate: u32) -> Result<Load, Failure> {
        let shared = Arc::new(Shared {
            clients: Mutex::default(),
            all_clients: Mutex::default(),
            fate: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        spread(&shared, urls)?;
        let pacer = tokio::spawn(pace(shared.clone(), rate));
        Ok(Load { shared, pacer })
    }

    /// Lets every node take its share again: clients stay with the node that answered last.
    pub(super) fn spread(&self, urls: &[String]) -> Result<(), Failure> {
        spread(&self.shared, urls)
    }

    /// When each of these shards first acknowledged a write in a later term than given here; absent until it did.
    pub(super) fn first_in_later_term(&self, shard: u16, term: u64) -> Option<Instant> {
        let fate = lock(&self.shared.fate);
        let later = fate.acked.values().filter(|ack| {
            ack.place.is_some_and(|(in_shard, in_term)| in_shard == shard && in_term > term)
        });
        later.map(|ack| ack.at).min()
    }

    /// The longest time without any acknowledged write between two moments.
    pub(super) fn silence(&self, from: Instant, to: Instant) -> Duration {
        let fate = lock(&self.shared.fate);
        let mut times: Vec<Instant> = fate.acked.values().map(|ack| ack.at).collect();
        drop(fate);
        times.retain(|at| (from..=to).contains(at));
        times.extend([from, to]);
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// Begins no more writes, waits for those under way, and gives how all ended, how many there were and how many
    /// times they were sent.
    pub(super) async fn stop(self) -> Result<(Fate, u64, u64), Failure> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let begun = self
            .pacer
            .await
            .map_err(|error| Failure::failed(format!("the load has ended by itself: {error}")))?;
        let tries = lock(&self.shared.all_clients).iter().map(Client::tries).sum();
        Ok((std::mem::take(&mut lock(&self.shared.fate)), begun, tries))
    }
}

fn spread(shared: &Shared, urls: &[String]) -> Result<(), Failure> {
    let mut clients = Vec::new();
    for first in 0..urls.len() {
        let mut urls = urls.to_vec();
        urls.rotate_left(first);
        let options = ClientOptions { timeout: WRITE_PATIENCE, ..ClientOptions::default() };
        clients.push(Client::with(&urls, options)?);
    }
    lock(&shared.all_clients).extend(clients.iter().cloned());
    *lock(&shared.clients) = clients;
    Ok(())
}

/// Begins writes on time; gives how many it began, once all have ended.
async fn pace(shared: Arc<Shared>, rate: u32) -> u64 {
    let mut pulse = tokio::time::interval(Duration::from_secs(1) / rate.max(1));
    let mut writes = JoinSet::new();
    let mut number = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        pulse.tick().await;
        let client = {
            let clients = lock(&shared.clients);
            clients[(number % clients.len() as u64) as usize].clone()
        };
        writes.spawn(write(shared.clone(), client, number));
        number += 1;
        while writes.try_join_next().is_some() {}
    }
    while writes.join_next().await.is_some() {}
    number
}

/// One write until it is settled.
async fn write(shared: Arc<Shared>, client: Client, number: u64) {
    let deadline = Instant::now() + WRITE_PATIENCE;
    let id = task_id(number);
    loop {
        let task =
            NewTask { id: Some(id.clone()), queue: Some(QUEUE.to_owned()), ..NewTask::default() };
        let answer = client.enqueue_with_positions(&id, vec![task]).await;
        let at = Instant::now();
        let mut fate = lock(&shared.fate);
        match answer {
            Ok((answer, positions)) => match answer.tasks.first() {
                Some(item) if item.outcome == OutcomeKind::Created => {
                    let place = positions.and_then(|text| parse_positions(&text).ok());
                    let place = place.and_then(|places| places.first().copied());
                    let place = place.map(|(shard, lsn)| (shard, lsn.term));
                    fate.acked.insert(number, Ack { at, place });
                    return;
                }
                Some(item) if item.outcome.is_settled() => {
                    let why = item.problem.as_ref().map(|problem| problem.to_string());
                    fate.refused.push((number, why.unwrap_or(format!("{:?}", item.outcome))));
                    return;
                }
                _ => {}
            },
            Err(Error::Refused(problem)) => {
                fate.refused.push((number, problem.to_string()));
                return;
            }
            Err(_) => {}
        }
        if at >= deadline {
            fate.unknown.push(number);
            return;
        }
        drop(fate);
        tokio::time::sleep(RESEND_PAUSE).await;
    }
}
