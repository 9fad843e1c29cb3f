//! Carries questions to the database over lanes: one connection each, one statement at a time, opened again when it breaks.
//!
//! Shards are spread over the lanes for appends, which also take and release leases: what a start or a stop asks for many
//! shards goes side by side, and their commits share a sync. Renewals have a lane that nothing else is in the way of.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ikada_replica::DatabaseTold;
use ikada_replica::consensus::lease::{Answer, Ask, Chain, Head, Lease, Work, Written};
use ikada_replica::consensus::{Entry, EntryKind};
use ikada_store::postgres::{AppendOutcome, Connection, KnownLog, LeaseRow, PostgresError, Tail};
use ikada_store::{RealDisk, Snapshots};
use tokio::sync::mpsc;
use tracing::warn;

use super::snapshot;
use super::thread::{DatabaseWork, Shared};
use super::weather::Weather;

/// Lanes for appends; shards share them.
const APPEND_LANES: usize = 4;
/// How long a question about a lease may take: shorter than a lease, so that it can be asked again.
const LEASE_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long any other question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a snapshot may take to be stored or fetched.
const BULK_PATIENCE: Duration = Duration::from_secs(600);

/// How often a purge is tried; after that the next snapshot's purge makes up for it.
const PURGE_TRIES: u32 = 5;
/// Pause between two tries.
const PURGE_PAUSE: Duration = Duration::from_secs(2);

type Inbox = mpsc::UnboundedSender<DatabaseWork>;

/// Shards that followers have not been told of yet.
#[derive(Clone)]
struct News {
    shards: Rc<RefCell<BTreeSet<u16>>>,
    teller: Inbox,
}

impl News {
    /// Has the shard told of; whatever comes in before that is told with it.
    fn add(&self, shard: u16) {
        let mut shards = self.shards.borrow_mut();
        if shards.is_empty() {
            // A lane ends only with the thread.
            let _ = self.teller.send(DatabaseWork::Tell);
        }
        shards.insert(shard);
    }

    fn take(&self) -> Vec<u16> {
        std::mem::take(&mut *self.shards.borrow_mut()).into_iter().collect()
    }
}

/// The lanes, by what they are for.
pub(super) struct Lanes {
    renew: Inbox,
    look: Inbox,
    tail: Inbox,
    append: Vec<Inbox>,
    bulk: Inbox,
}

impl Lanes {
    /// Starts all lanes on the thread's own task set.
    pub(super) fn new(shared: &Shared, snapshots: Snapshots<RealDisk>) -> Lanes {
        let snapshots = Arc::new(snapshots);
        let (look, questions) = mpsc::unbounded_channel();
        let news = News { shards: Rc::default(), teller: look.clone() };
        let weather = Weather::new(shared);
        let start = |inbox| {
            let lane = Lane {
                shared: shared.clone(),
                snapshots: snapshots.clone(),
                news: news.clone(),
                weather: weather.clone(),
                connection: None,
            };
            tokio::task::spawn_local(lane.run(inbox));
        };
        start(questions);
        let lane = || {
            let (sender, inbox) = mpsc::unbounded_channel();
            start(inbox);
            sender
        };
        Lanes {
            renew: lane(),
            look,
            tail: lane(),
            append: (0..APPEND_LANES).map(|_| lane()).collect(),
            bulk: lane(),
        }
    }

    /// Puts work into its lane.
    pub(super) fn take(&self, work: DatabaseWork) {
        let lane = match &work {
            DatabaseWork::Fetch(_) => &self.bulk,
            DatabaseWork::Tell => &self.look,
            DatabaseWork::Ask(ask) => match ask.work {
                Work::Renew { .. } => &self.renew,
                Work::Append { .. } | Work::Take { .. } | Work::Release { .. } => {
                    &self.append[usize::from(ask.shard) % APPEND_LANES]
                }
                Work::Read { .. } => &self.tail,
                Work::Look { .. } | Work::Mark { .. } => &self.look,
                Work::Purge { .. } => &self.bulk,
            },
        };
        // A lane ends only with the thread.
        let _ = lane.send(work);
    }
}

/// How long a question may take.
fn patience(work: &Work) -> Duration {
    match work {
        Work::Take { .. } | Work::Renew { .. } | Work::Release { .. } | Work::Mark { .. } => {
            LEASE_PATIENCE
        }
        Work::Append { .. } | Work::Read { .. } | Work::Look { .. } => PATIENCE,
        Work::Purge { .. } => BULK_PATIENCE,
    }
}

/// Whether a question is written down in the database, if it goes well. One that finds the lease another's writes nothing, and says
/// that it would have.
fn writes(work: &Work) -> bool {
    match work {
        Work::Take { .. } | Work::Append { .. } | Work::Mark { .. } | Work::Purge { .. } => true,
        // A small room may be left for the rows of leases where the log has none.
        Work::Renew { .. } | Work::Release { .. } | Work::Read { .. } | Work::Look { .. } => false,
    }
}

struct Lane {
    shared: Shared,
    snapshots: Arc<Snapshots<RealDisk>>,
    news: News,
    weather: Weather,
    connection: Option<Connection>,
}

impl Lane {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<DatabaseWork>) {
        while let Some(work) = inbox.recv().await {
            match work {
                DatabaseWork::Ask(ask) => {
                    let (shard, id) = (ask.shard, ask.id);
                    let answer = match ask.work {
                        Work::Purge { .. } => self.purge(&ask).await,
                        _ => self.answer(&ask).await,
                    };
                    if matches!(answer, Answer::Appended { .. }) {
                        self.news.add(shard);
                    }
                    self.shared.tell(DatabaseTold::Answered { shard, id, answer });
                }
                DatabaseWork::Tell => self.tell().await,
                DatabaseWork::Fetch(shard) => {
                    let found = self.fetch(shard).await;
                    self.shared.tell(DatabaseTold::Fetched { shard, found });
                }
            }
        }
    }

    async fn answer(&mut self, ask: &Ask) -> Answer {
        let began = Instant::now();
        let asking = tokio::time::timeout(patience(&ask.work), self.carry_out(ask)).await;
        let outcome = asking.unwrap_or_else(|_| {
            Err(PostgresError::Statement(format!("{}: no answer in time", self.shared.target)))
        });
        match outcome {
            Ok(answer) => {
                self.weather.good(writes(&ask.work));
                if matches!(answer, Answer::Appended { .. }) {
                    self.shared.counters.database_appended(began.elapsed());
                }
                answer
            }
            Err(error) => {
                // Whatever is still under way on it must not answer the next question.
                self.connection = None;
                self.weather.bad(&error);
                Answer::Failed
            }
        }
    }

    /// Wakes those who follow. Nobody repeats it: they poll too.
    async fn tell(&mut self) {
        let shards = self.news.take();
        let telling = async { self.connection().await?.tell(&shards).await };
        let told = tokio::time::timeout(LEASE_PATIENCE, telling).await;
        if !matches!(told, Ok(Ok(()))) {
            self.connection = None;
        }
    }

    /// A snapshot is stored and the log below it goes; what one try left is taken up by the next.
    async fn purge(&mut self, ask: &Ask) -> Answer {
        for _ in 1..PURGE_TRIES {
            match self.answer(ask).await {
                Answer::Failed => tokio::time::sleep(PURGE_PAUSE).await,
                done => return done,
            }
        }
        self.answer(ask).await
    }

    async fn connection(&mut self) -> Result<&Connection, PostgresError> {
        if self.connection.as_ref().is_none_or(Connection::is_closed) {
            self.connection = None;
        }
        match &mut self.connection {
            Some(open) => Ok(open),
            empty => {
                let opened = self.shared.target.connect().await?;
                self.shared.counters.database_connected();
                Ok(empty.insert(opened))
            }
        }
    }

    async fn carry_out(&mut self, ask: &Ask) -> Result<Answer, PostgresError> {
        let (holder, snapshots) = (self.shared.holder, self.snapshots.clone());
        let shard = ask.shard;
        let connection = self.connection().await?;
        Ok(match &ask.work {
            Work::Take { ttl_ms, known } => {
                let (epoch, index, chain) = (known.epoch, known.index, known.chain.0);
                let known = KnownLog { epoch, index, chain };
                lease(connection.take_lease(shard, holder, *ttl_ms, known).await?)
            }
            Work::Renew { epoch, ttl_ms } => {
                lease(connection.renew_lease(shard, holder, *epoch, *ttl_ms).await?)
            }
            Work::Release { epoch, to } => {
                lease(connection.release_lease(shard, holder, *epoch, *to).await?)
            }
            Work::Look { from_index } => {
                tail(connection.read_entries(shard, holder, *from_index, 0).await?)
            }
            Work::Mark { index } => {
                connection.mark_missing(shard, holder.node, *index).await?;
                lease(connection.look_at_lease(shard, holder).await?)
            }
            Work::Append { epoch, after, entries } => {
                let payloads: Vec<Bytes> = entries.iter().map(|entry| entry.data.clone()).collect();
                let place = (entries.first().map_or(0, |entry| entry.index), after.0);
                match connection.append_entries(shard, holder, *epoch, place, &payloads).await? {
                    AppendOutcome::Appended(chain) => Answer::Appended { chain: Chain(chain) },
                    AppendOutcome::Deposed => Answer::Deposed,
                    AppendOutcome::Conflict => Answer::Conflict,
                }
            }
            Work::Read { from_index, bytes_max } => {
                tail(connection.read_entries(shard, holder, *from_index, *bytes_max).await?)
            }
            Work::Purge { epoch, to_index, known } => {
                let known = (known.index, known.chain.0);
                // A snapshot of a history that the database lost must not stand beside another one's log.
                if connection.read_entries(shard, holder, known.0 + 1, 0).await?.has(known) {
                    snapshot::store(connection, &snapshots, shard, *to_index).await?;
                    connection.purge_entries(shard, holder, *epoch, *to_index, known).await?;
                }
                lease(connection.look_at_lease(shard, holder).await?)
            }
        })
    }

    async fn fetch(&mut self, shard: u16) -> snapshot::Fetched {
        let snapshots = self.snapshots.clone();
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => {
                self.weather.bad(&error);
                return None;
            }
        };
        let fetching = snapshot::fetch(connection, &snapshots, shard);
        match tokio::time::timeout(BULK_PATIENCE, fetching).await {
            Ok(Ok(found)) => found,
            Ok(Err(why)) => {
                warn!(%why, shard, "the stored snapshot cannot be used; it is tried again");
                None
            }
            Err(_) => None,
        }
    }
}

fn lease(row: LeaseRow) -> Answer {
    Answer::Lease(lease_of(&row))
}

fn lease_of(row: &LeaseRow) -> Lease {
    let LeaseRow { holder, life, is_ours, epoch, remaining_ms, favoured } = *row;
    Lease { holder, life, is_ours, epoch, remaining_ms, favoured }
}

fn tail(tail: Tail) -> Answer {
    let entries = tail.entries.into_iter().map(|row| Written {
        chain: Chain(row.chain),
        entry: Entry {
            term: row.epoch,
            index: row.index,
            kind: EntryKind::Normal,
            data: row.payload,
            context: Bytes::new(),
        },
    });
    let head = Head {
        lease: lease_of(&tail.lease),
        purged_index: tail.purged_index,
        last_index: tail.last_index,
        before: tail.before.map(|(epoch, chain)| (epoch, Chain(chain))),
        missing: tail.missing.map(|missing| (missing.index, missing.node)),
    };
    Answer::Tail { head, entries: entries.collect() }
}
