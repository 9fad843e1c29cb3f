//! The database thread: a small runtime of its own, so that nothing which clients do can hold a renewal up.

use std::thread;
use std::time::Instant;

use ikada_replica::consensus::lease::Ask;
use ikada_replica::{DatabaseTold, Input};
use ikada_store::postgres::{Holder, QUIET, Target, watch};
use ikada_store::{Identity, RealDisk, Snapshots};
use tokio::sync::mpsc;
use tracing::warn;

use super::carry::Lanes;
use crate::boot::BootError;
use crate::counters::SharedCounters;
use crate::driver::{DriverMessage, DriverSender};

/// Something for the database thread.
#[derive(Debug)]
pub enum DatabaseWork {
    /// A question.
    Ask(Ask),
    /// Followers shall hear of what was appended; the lanes ask this of each other.
    Tell,
    /// The snapshot stored for this shard shall be brought here.
    Fetch(u16),
}

/// The thread's inbox. Unbounded: the protocol has at most a handful of questions under way per shard.
pub type DatabaseSender = mpsc::UnboundedSender<DatabaseWork>;

/// What the lanes share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) target: Target,
    pub(super) holder: Holder,
    pub(super) driver: DriverSender,
    pub(super) counters: SharedCounters,
}

impl Shared {
    /// Tells the driver; one that has ended needs nothing.
    pub(super) fn tell(&self, told: DatabaseTold) {
        let _ = self.driver.send(DriverMessage::Input(Input::Database(told)));
    }
}

/// A thread about to start.
pub struct Database {
    target: Target,
    holder: Holder,
    snapshots: Snapshots<RealDisk>,
    sender: DatabaseSender,
    inbox: mpsc::UnboundedReceiver<DatabaseWork>,
}

impl Database {
    /// Where logs live in a database: its inbox, and the snapshot files. Every start is a new life.
    pub fn prepare(
        target: Option<&Target>,
        disk: &RealDisk,
        identity: &Identity,
    ) -> Result<Option<Database>, BootError> {
        let Some(target) = target.cloned() else { return Ok(None) };
        let snapshots = Snapshots::open(disk.clone(), identity)?;
        let (sender, inbox) = mpsc::unbounded_channel();
        // The database knows signed numbers only.
        let holder = Holder { node: identity.node, life: fastrand::u64(..) >> 1 };
        Ok(Some(Database { target, holder, snapshots, sender, inbox }))
    }

    /// Where its work goes.
    pub fn sender(&self) -> DatabaseSender {
        self.sender.clone()
    }

    /// Starts the thread; it ends when nobody can send it work any more.
    pub fn start(
        self,
        driver: DriverSender,
        counters: SharedCounters,
    ) -> std::io::Result<thread::JoinHandle<()>> {
        let Database { target, holder, snapshots, sender, mut inbox } = self;
        drop(sender);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("ikada-database".into()).spawn(move || {
            let shared = Shared { target, holder, driver, counters };
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                let lanes = Lanes::new(&shared, snapshots);
                tokio::task::spawn_local(listen(shared));
                while let Some(work) = inbox.recv().await {
                    lanes.take(work);
                }
            });
            // A disk that stands still with a snapshot does not hold the end up.
            runtime.shutdown_background();
        })
    }
}

/// Passes notices on for as long as there is a connection; polls make up for the time between.
async fn listen(shared: Shared) {
    const RETRY_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
    const TELL_EVERY: std::time::Duration = std::time::Duration::from_secs(30);
    let mut told: Option<Instant> = None;
    loop {
        match watch(&shared.target, QUIET).await {
            Ok(mut watch) => {
                while let Some(shard) = watch.next().await {
                    shared.tell(DatabaseTold::Changed(shard));
                }
            }
            Err(error) if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) => {
                told = Some(Instant::now());
                warn!(%error, "no notices from the database; it is polled meanwhile");
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}
