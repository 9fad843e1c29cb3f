//! What a handler gets and gives: the claimed task, its result, its failure.

use std::sync::Arc;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{
    BodyError, ClaimedTask, NewCheckpoint, NewTask, Number, OutputItem, UploadInfo, WorkInfo,
};

use super::progress::Board;
use crate::agent::{Done, Failure};

/// A task that this worker holds. The claim is renewed for as long as the handler runs; if it is lost all the same, the
/// handler's future is dropped.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claimed {
    /// The task's id.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// What to do, byte for byte as it was submitted.
    pub payload: Vec<u8>,
    /// The fencing token of this attempt. Of one task's attempts the newest has the highest: an outside system that
    /// remembers it and refuses lower ones is safe from attempts that were given up.
    pub fence: u64,
    /// Which try this is, from 1.
    pub attempt: u16,
    /// Most tries.
    pub max_attempts: u16,
    /// How long the claim lives without renewal.
    pub ttl: Duration,
    /// Longest time for the whole attempt, renewed or not; absent when there is none.
    pub timeout: Option<Duration>,
    /// The program it names, with settings and inputs; absent for a plain task.
    pub work: Option<Box<WorkInfo>>,
    /// Whether an earlier attempt left a checkpoint ([`Claimed::last_checkpoint`]).
    pub checkpoint: bool,
    /// Where spans about it belong, in the form of the header `traceparent`; none unless the nodes send traces.
    pub traceparent: Option<String>,
    /// The worker that holds it.
    pub worker: Arc<str>,
    /// That worker's process run.
    pub session: u64,
    /// Where it says how far it is.
    board: Board,
}

/// Bucket and name of a task's checkpoint.
pub(crate) fn checkpoint_place(task: &str) -> (&'static str, String) {
    ("tasks", format!("{task}/.checkpoint"))
}

impl Claimed {
    pub(super) fn read(
        task: ClaimedTask,
        worker: Arc<str>,
        session: u64,
        board: Board,
    ) -> Result<Claimed, BodyError> {
        Ok(Claimed {
            payload: task.payload()?,
            id: task.id,
            queue: task.queue,
            fence: task.fence.0,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            ttl: Duration::from_millis(u64::from(task.ttl_ms)),
            timeout: task.timeout_ms.map(|timeout_ms| Duration::from_millis(u64::from(timeout_ms))),
            work: task.work,
            checkpoint: task.checkpoint,
            traceparent: task.traceparent,
            worker,
            session,
            board,
        })
    }

    /// Reads the payload as JSON.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.payload)
    }

    /// Says how far this attempt is, from 0 to 1, and a few words beside it (kept up to 256 bytes). The next renewal takes
    /// the newest word along, within a few seconds; `GET /v1/tasks/{id}` and `ikada task show` tell it.
    pub fn progress(&self, share: f64, note: &str) {
        self.board.say(&self.id, self.fence, share, note);
    }

    /// What the last attempt kept by [`Claimed::keep_checkpoint`]; none if none did.
    pub async fn last_checkpoint(&self, client: &Client) -> Result<Option<Vec<u8>>, Error> {
        if !self.checkpoint {
            return Ok(None);
        }
        let (bucket, key) = checkpoint_place(&self.id);
        let mut reader = client.get_object(bucket, &key, &GetOptions::default()).await?;
        let mut bytes = Vec::new();
        while let Some(some) = reader.next().await? {
            bytes.extend_from_slice(&some);
        }
        Ok(Some(bytes))
    }

    /// Keeps how far this attempt has come, for the next one. Refused once another attempt has taken over.
    pub async fn keep_checkpoint(&self, client: &Client, bytes: Vec<u8>) -> Result<(), Error> {
        let source = ObjectSource::Bytes(bytes.into());
        let stored = client.upload(&source, &PutOptions::default()).await?;
        client.checkpoint(&self.id, &self.checkpoint_of(stored)).await
    }

    /// The order that makes uploaded bytes this task's checkpoint.
    pub(crate) fn checkpoint_of(&self, stored: UploadInfo) -> NewCheckpoint {
        let UploadInfo { size, digest, chunks } = stored;
        NewCheckpoint {
            worker: self.worker.to_string(),
            fence: Number(self.fence),
            size,
            digest,
            chunks,
        }
    }

    /// Whether a failure now is the last one.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt >= self.max_attempts
    }
}

/// What a task came to; kept with the task, up to 64 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskResult(Done);

impl TaskResult {
    /// The same result with files that were uploaded (`Client::upload`); they become visible if this attempt counts.
    pub fn with_outputs(mut self, outputs: Vec<OutputItem>) -> TaskResult {
        self.0.outputs = outputs;
        self
    }

    /// The same result with one more follow-up: a task that is submitted in the step in which this attempt counts, and only
    /// then. It has the key of this task, and needs no id of its own: tried again, the same step makes the same one.
    pub fn then(mut self, task: NewTask) -> TaskResult {
        self.0.then.0.push(task);
        self
    }

    /// A value as JSON.
    pub fn json<T: serde::Serialize>(value: &T) -> Result<TaskResult, serde_json::Error> {
        serde_json::to_vec(value).map(TaskResult::from)
    }

    pub(crate) fn into_done(self) -> Done {
        self.0
    }
}

impl From<()> for TaskResult {
    fn from((): ()) -> TaskResult {
        TaskResult::default()
    }
}

impl From<Vec<u8>> for TaskResult {
    fn from(bytes: Vec<u8>) -> TaskResult {
        TaskResult(bytes.into())
    }
}

impl From<serde_json::Value> for TaskResult {
    fn from(value: serde_json::Value) -> TaskResult {
        value.to_string().into_bytes().into()
    }
}

/// Why an attempt failed. Every error turns into one that may be tried again, so that `?` works in handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    message: String,
    retry: bool,
    delay: Option<Duration>,
}

impl TaskError {
    /// A failure that may be tried again, after the task's own backoff.
    pub fn new(message: impl Into<String>) -> TaskError {
        TaskError { message: message.into(), retry: true, delay: None }
    }

    /// A failure that no further attempt can mend: the task is given up.
    pub fn give_up(message: impl Into<String>) -> TaskError {
        TaskError { message: message.into(), retry: false, delay: None }
    }

    /// The same failure with another wait before the next attempt.
    pub fn retry_after(mut self, delay: Duration) -> TaskError {
        self.delay = Some(delay);
        self
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> TaskError {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(deeper) = cause {
            message = format!("{message}: {deeper}");
            cause = deeper.source();
        }
        TaskError::new(message)
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Failure {
        let delay_ms = error.delay.map(|delay| delay.as_millis() as u64);
        Failure { error: error.message, retry: error.retry, delay_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_turn_into_failures_with_their_causes() {
        let read = |text: &str| -> Result<u32, TaskError> { Ok(text.parse()?) };
        let error = read("x").unwrap_err();
        assert!(error.retry);
        assert!(error.message().contains("invalid digit"), "{error:?}");
        let failure = Failure::from(TaskError::give_up("no such person"));
        assert!(!failure.retry);
        let failure = Failure::from(TaskError::new("busy").retry_after(Duration::from_secs(2)));
        assert_eq!((failure.retry, failure.delay_ms), (true, Some(2_000)));
    }

    #[test]
    fn results_are_none_bytes_or_json() {
        assert!(TaskResult::from(()).into_done().result.is_empty());
        assert_eq!(TaskResult::from(vec![7]).into_done().result, [7]);
        assert_eq!(TaskResult::json(&"sent").unwrap().into_done().result, b"\"sent\"");
        assert_eq!(TaskResult::from(serde_json::json!({"n": 1})).into_done().result, b"{\"n\":1}");
    }
}
