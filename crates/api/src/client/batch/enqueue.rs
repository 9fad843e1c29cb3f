//! Submissions, one task per caller.

use std::sync::Arc;

use ikada_state::{Namespace, RequestId, RequestKey, derive_task_id};

use super::gather::Lane;
use super::{BatchOptions, ItemError, Load, Place};
use crate::client::{Client, Error};
use crate::convert::{AnyProgram, enqueue_order};
use crate::problem::Problem;
use crate::v1::{EnqueueBatch, ItemOutcome, NewTask, WorkInput};

/// Bytes of a task's document besides its texts: names of fields, quotes, numbers.
const FRAME_BYTES: usize = 128;

/// Submits tasks of many callers in batches; clones share the batches.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use ikada_api::client::{Client, Enqueuer};
/// use ikada_api::v1::NewTask;
///
/// let enqueuer = Enqueuer::new(Client::new(["http://127.0.0.1:7400"])?);
/// let task = NewTask { queue: Some("mail".into()), ..NewTask::default() };
/// let outcome = enqueuer.enqueue(task).await?;
/// println!("{} is in line", outcome.id);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Enqueuer {
    lane: Arc<Lane<Enqueues>>,
}

impl Enqueuer {
    /// A batcher with the usual bounds.
    pub fn new(client: Client) -> Enqueuer {
        Enqueuer::with(client, BatchOptions::default())
    }

    /// A batcher with other bounds.
    pub fn with(client: Client, options: BatchOptions) -> Enqueuer {
        let namespace = client.inner.options.namespace.as_deref();
        // A namespace that cannot be is refused by the server with every request; nothing is derived from it.
        let namespace = namespace.and_then(|name| Namespace::parse(name).ok()).unwrap_or_default();
        Enqueuer { lane: Lane::new(Enqueues { client, namespace }, options) }
    }

    /// Submits one task. `Ok` means that the cluster has it: created now, or existing with the same body.
    pub async fn enqueue(&self, task: NewTask) -> Result<ItemOutcome, ItemError> {
        self.lane.submit(task.with_raw_payload()).await
    }
}

impl std::fmt::Debug for Enqueuer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Enqueuer").finish_non_exhaustive()
    }
}

struct Enqueues {
    client: Client,
    namespace: Namespace,
}

fn place_key(key: &str, place: usize) -> Option<RequestKey> {
    Some(RequestKey { id: RequestId::parse(key).ok()?, item: place as u32 })
}

/// About how many bytes an input takes on the wire.
fn input_bytes(input: &WorkInput) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = [&input.bucket, &input.key, &input.digest, &input.url, &input.text];
    FRAME_BYTES + input.name.len() + texts.into_iter().map(length).sum::<usize>()
}

/// About how many bytes a task takes on the wire, follow-ups included.
pub(super) fn task_bytes(task: &NewTask) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let payload = task.payload_bytes.as_ref().map_or(0, |payload| payload.0.len());
    let names = length(&task.id) + length(&task.key) + length(&task.queue);
    let labels: usize = task.labels.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
    let then: usize = task.then.iter().map(task_bytes).sum();
    let settings: usize =
        task.settings.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
    let inputs: usize = task.inputs.iter().map(input_bytes).sum();
    let work = length(&task.program) + length(&task.entry) + settings + inputs;
    FRAME_BYTES + names + payload + length(&task.payload_base64) + labels + then + work
}

impl Load for Enqueues {
    type Item = NewTask;

    fn client(&self) -> &Client {
        &self.client
    }

    fn bytes(task: &NewTask) -> usize {
        task_bytes(task)
    }

    async fn send(&self, key: &str, items: &mut Vec<NewTask>) -> Result<Vec<ItemOutcome>, Error> {
        let batch = EnqueueBatch { tasks: std::mem::take(items) };
        let answer = self.client.enqueue_once(key, &batch).await;
        *items = batch.tasks;
        Ok(answer?.tasks)
    }

    fn check(&self, task: &NewTask) -> Option<Problem> {
        let key = place_key("check", 0)?;
        Some(Problem::from(&enqueue_order(&self.namespace, key, task, &AnyProgram).err()?))
    }

    fn pin(&self, key: &str, items: &mut [NewTask]) {
        for (place, task) in items.iter_mut().enumerate() {
            if task.id.is_none() {
                let key = place_key(key, place);
                task.id = key.map(|key| derive_task_id(&self.namespace, &key).to_string());
            }
        }
    }

    fn name(&self, key: &str, place: usize, task: &NewTask) -> (String, Option<Place>) {
        let id = task.id.clone().or_else(|| {
            let id = derive_task_id(&self.namespace, &place_key(key, place)?);
            Some(id.to_string())
        });
        let id = match (id.unwrap_or_default(), &task.key) {
            (id, Some(key)) if !id.contains(':') => format!("{key}:{id}"),
            (id, _) => id,
        };
        let place = Place { request: key.to_owned(), item: place as u32 };
        (id, Some(place))
    }
}
