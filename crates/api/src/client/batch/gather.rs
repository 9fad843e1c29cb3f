//! The line in which items wait for the next batch.
//!
//! Invariants: `flights` counts the tasks that send, each of which holds one batch or is about to look for one; items in
//! line imply `flights > 0`. Both change under one lock only, so that no item is left behind by a task that ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use super::deliver::deliver;
use super::{BatchOptions, ItemError, Load};
use crate::v1::ItemOutcome;

/// Where one caller waits.
pub(super) type Reply = oneshot::Sender<Result<ItemOutcome, ItemError>>;

struct Waiting<I> {
    item: I,
    bytes: usize,
    reply: Reply,
}

struct Queue<I> {
    waiting: VecDeque<Waiting<I>>,
    bytes: usize,
    flights: usize,
}

/// One kind of item on its way to one cluster.
pub(super) struct Lane<L: Load> {
    pub(super) load: L,
    options: BatchOptions,
    queue: Mutex<Queue<L::Item>>,
    /// Room for batches that are sent again.
    pub(super) resends: Semaphore,
}

/// Items that travel together, and where their callers wait.
pub(super) struct Batch<I> {
    pub(super) items: Vec<I>,
    pub(super) replies: Vec<Reply>,
}

impl<L: Load> Lane<L> {
    pub(super) fn new(load: L, options: BatchOptions) -> Arc<Lane<L>> {
        let queue = Queue { waiting: VecDeque::new(), bytes: 0, flights: 0 };
        let resends = Semaphore::new(options.resends_max.min(Semaphore::MAX_PERMITS));
        Arc::new(Lane { load, options, queue: Mutex::new(queue), resends })
    }

    fn lock(&self) -> MutexGuard<'_, Queue<L::Item>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item in line and waits for its outcome.
    pub(super) async fn submit(self: &Arc<Self>, item: L::Item) -> Result<ItemOutcome, ItemError> {
        let answer = self.join_line(item)?;
        answer.await.unwrap_or(Err(ItemError::Abandoned))
    }

    fn join_line(
        self: &Arc<Self>,
        item: L::Item,
    ) -> Result<oneshot::Receiver<Result<ItemOutcome, ItemError>>, ItemError> {
        let bytes = L::bytes(&item);
        let (reply, answer) = oneshot::channel();
        let begin = {
            let mut queue = self.lock();
            let full = queue.waiting.len() >= self.options.waiting_max
                || queue.bytes + bytes > self.options.waiting_bytes_max;
            // An item larger than the whole line may wait alone.
            if full && !queue.waiting.is_empty() {
                return Err(ItemError::Unavailable { detail: too_long(queue.waiting.len()) });
            }
            queue.waiting.push_back(Waiting { item, bytes, reply });
            queue.bytes += bytes;
            let begin = queue.flights < self.options.flights_max.max(1);
            queue.flights += usize::from(begin);
            begin
        };
        if begin {
            tokio::spawn(fly(self.clone()));
        }
        Ok(answer)
    }

    /// The next batch; none ends the flight.
    fn take(&self) -> Option<Batch<L::Item>> {
        let mut queue = self.lock();
        let room = queue.waiting.len().min(self.options.items_max.max(1));
        let mut batch =
            Batch { items: Vec::with_capacity(room), replies: Vec::with_capacity(room) };
        let mut bytes = 0;
        while let Some(next) = queue.waiting.front() {
            let full = batch.items.len() >= self.options.items_max.max(1)
                || bytes + next.bytes > self.options.bytes_max;
            if full && !batch.items.is_empty() {
                break;
            }
            let Some(next) = queue.waiting.pop_front() else {
                break;
            };
            queue.bytes -= next.bytes;
            // Its caller has gone before anything was sent.
            if next.reply.is_closed() {
                continue;
            }
            bytes += next.bytes;
            batch.items.push(next.item);
            batch.replies.push(next.reply);
        }
        if batch.items.is_empty() {
            queue.flights -= 1;
            return None;
        }
        Some(batch)
    }

    /// A flight was cut off: its place is free, and if no other is left to serve the line, the line is told.
    fn cut_off(&self) {
        let mut queue = self.lock();
        queue.flights -= 1;
        if queue.flights == 0 {
            queue.waiting.clear();
            queue.bytes = 0;
        }
    }
}

fn too_long(waiting: usize) -> String {
    format!("{waiting} items wait in line already; slow down or raise the bounds of the batcher")
}

/// Sends batches until nobody waits.
async fn fly<L: Load>(lane: Arc<Lane<L>>) {
    let mut flight = Flight { lane, landed: false };
    loop {
        // Callers that are ready to run at this very moment get in, those that were answered just now among them;
        // nobody waits for time to pass.
        tokio::task::yield_now().await;
        let Some(batch) = flight.lane.take() else {
            break;
        };
        deliver(&flight.lane, batch).await;
    }
    flight.landed = true;
}

/// Frees the place of a flight whose runtime ends in the middle.
struct Flight<L: Load> {
    lane: Arc<Lane<L>>,
    landed: bool,
}

impl<L: Load> Drop for Flight<L> {
    fn drop(&mut self) {
        if !self.landed {
            self.lane.cut_off();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::client::{Client, Error, Place};
    use crate::problem::Problem;
    use crate::v1::OutcomeKind;

    /// Answers every item with its own number, and counts.
    struct Echo {
        client: Client,
        lists: AtomicUsize,
        longest: AtomicUsize,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Echo {
        fn new() -> Echo {
            let client = Client::new(["http://127.0.0.1:1"]).unwrap();
            let zero = AtomicUsize::default;
            Echo { client, lists: zero(), longest: zero(), now: zero(), most: zero() }
        }
    }

    impl Load for Echo {
        type Item = usize;

        fn client(&self) -> &Client {
            &self.client
        }

        fn bytes(_: &usize) -> usize {
            8
        }

        async fn send(&self, _: &str, items: &mut Vec<usize>) -> Result<Vec<ItemOutcome>, Error> {
            self.lists.fetch_add(1, Ordering::SeqCst);
            self.longest.fetch_max(items.len(), Ordering::SeqCst);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            let outcome = |item: &usize| ItemOutcome {
                id: item.to_string(),
                outcome: OutcomeKind::Created,
                lsn: None,
                ttl_ms: None,
                retry_at_ms: None,
                problem: None,
            };
            Ok(items.iter().map(outcome).collect())
        }

        fn check(&self, _: &usize) -> Option<Problem> {
            None
        }

        fn pin(&self, _: &str, _: &mut [usize]) {}

        fn name(&self, _: &str, _: usize, item: &usize) -> (String, Option<Place>) {
            (item.to_string(), None)
        }
    }

    const CALLERS: usize = 1_024;
    const EACH: usize = 100;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_callers_on_two_threads_each_get_their_own() {
        let options = BatchOptions { items_max: 256, flights_max: 2, ..BatchOptions::default() };
        let lane = Lane::new(Echo::new(), options);
        let begin = std::time::Instant::now();
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let lane = lane.clone();
                tokio::spawn(async move {
                    for number in 0..EACH {
                        let item = caller * EACH + number;
                        let outcome = lane.submit(item).await.unwrap();
                        assert_eq!(outcome.id, item.to_string());
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        let nanos = begin.elapsed().as_nanos() / (CALLERS * EACH) as u128;
        let lists = lane.load.lists.load(Ordering::SeqCst);
        println!("{nanos} ns per item, {} items per list", CALLERS * EACH / lists);
        assert!(lane.load.longest.load(Ordering::SeqCst) <= 256);
        assert!(lane.load.most.load(Ordering::SeqCst) <= 2);
        assert!(lists < CALLERS * EACH / 8, "{lists} lists: the items did not gather");
        // The flights end a moment after their last answers.
        while lane.lock().flights > 0 {
            tokio::task::yield_now().await;
        }
        let queue = lane.lock();
        assert_eq!((queue.waiting.len(), queue.bytes), (0, 0));
    }
}
