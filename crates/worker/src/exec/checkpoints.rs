//! Keeps what a program leaves in `$IKADA_CHECKPOINT`, and puts the last one there before the next attempt begins.
//!
//! A program writes a file beside it and renames it: what has the name is whole. It is looked at every second and once more when the
//! run is over, however it ended. The cluster takes it only with the fence of the live claim, so an attempt that was given up
//! changes nothing. Trouble with a checkpoint never fails an attempt: at worst the next one begins further back.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectSource, OpenSource, PutOptions};

use super::fetch::{PAUSE_FIRST, is_worth_waiting};
use super::folder::{CHECKPOINT, Folder};
use super::near::Objects;
use super::{Stop, fetch};
use crate::beneath::Beneath;
use crate::run::{Claimed, TaskError, checkpoint_place};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the last look may take: a failure must not wait for its checkpoint for ever.
const LAST_LOOK: Duration = Duration::from_secs(30);
/// The same for a run that was told to end: its slot is wanted.
const LAST_LOOK_TOLD: Duration = Duration::from_millis(500);
/// Largest one; the cluster takes no larger.
const BYTES_MAX: u64 = 1 << 30;

/// Which state of the file: another one has another mark.
type Mark = (u64, u64, i64, i64);

/// Keeps the checkpoints of one attempt.
pub(super) struct Keeper<'a> {
    client: &'a Client,
    task: &'a Claimed,
    folder: Mutex<Option<Arc<Folder>>>,
    kept: Mutex<Option<Mark>>,
}

#[derive(Debug)]
struct Source(Arc<Beneath>);

impl OpenSource for Source {
    fn open(&self) -> io::Result<File> {
        self.0.open(CHECKPOINT)
    }
}

impl<'a> Keeper<'a> {
    pub(super) fn new(client: &'a Client, task: &'a Claimed) -> Keeper<'a> {
        Keeper { client, task, folder: Mutex::new(None), kept: Mutex::new(None) }
    }

    /// Brings the last checkpoint into the folder, if there is one.
    pub(super) async fn begin(&self, folder: &Arc<Folder>) -> Result<(), TaskError> {
        if self.task.checkpoint {
            let mut file = folder.handle().create(CHECKPOINT)?;
            let (bucket, key) = checkpoint_place(&self.task.id);
            let options = GetOptions::default();
            let objects = Objects::new(self.client.clone(), None);
            fetch::download(&objects, bucket, &key, &options, None, &mut file).await?;
            folder.hand_over_open(&file)?;
            self.note(mark(&file.metadata()?));
        }
        if let Ok(mut held) = self.folder.lock() {
            *held = Some(folder.clone());
        }
        Ok(())
    }

    /// Runs an attempt and keeps its checkpoints; what it left is kept whatever became of it.
    pub(super) async fn keep_while<T>(
        &self,
        running: impl Future<Output = Result<T, TaskError>>,
        stop: Stop,
    ) -> Result<T, TaskError> {
        let mut running = std::pin::pin!(running);
        let ended = loop {
            tokio::select! {
                ended = &mut running => break ended,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            tokio::select! {
                ended = &mut running => break ended,
                () = self.look() => {}
            }
        };
        // Who is done needs none.
        if ended.is_err() {
            let patience = if stop.is_told() { LAST_LOOK_TOLD } else { LAST_LOOK };
            // What could not be kept in time is lost; the attempt before it was not better off.
            let _ = tokio::time::timeout(patience, self.look()).await;
        }
        let held = self.folder.lock().ok().and_then(|mut held| held.take());
        if let Some(folder) = held {
            Folder::put_away(folder).await;
        }
        ended
    }

    /// Keeps the file if it is another one than was kept last.
    async fn look(&self) {
        let held = self.folder.lock().ok().and_then(|held| held.clone());
        let Some(folder) = held else { return };
        let Ok(file) = folder.handle().open(CHECKPOINT) else { return };
        let Ok(now) = file.metadata() else { return };
        let mark = mark(&now);
        if self.kept.lock().is_ok_and(|kept| *kept == Some(mark)) {
            return;
        }
        let task = &self.task.id;
        if now.len() > BYTES_MAX {
            self.note(mark);
            return tracing::warn!(task, "a checkpoint of {} bytes is too large", now.len());
        }
        let source = ObjectSource::Open(Arc::new(Source(folder.handle().clone())));
        let mut pause = PAUSE_FIRST;
        // Noted once it is kept, or refused for good: whoever is cut short while there is no room tries again.
        while let Err(error) = self.keep(&source).await {
            if !is_worth_waiting(&error, &mut pause).await {
                tracing::warn!(task, %error, "a checkpoint could not be kept");
                break;
            }
        }
        self.note(mark);
    }

    /// Keeps what the file holds by now.
    async fn keep(&self, source: &ObjectSource) -> Result<(), Error> {
        let stored = self.client.upload(source, &PutOptions::default()).await?;
        self.client.checkpoint(&self.task.id, &self.task.checkpoint_of(stored)).await
    }

    fn note(&self, mark: Mark) {
        if let Ok(mut kept) = self.kept.lock() {
            *kept = Some(mark);
        }
    }
}

fn mark(file: &Metadata) -> Mark {
    (file.ino(), file.len(), file.mtime(), file.mtime_nsec())
}
