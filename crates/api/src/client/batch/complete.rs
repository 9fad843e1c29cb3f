//! Completions, one task per caller. The fence makes each safe to repeat, so that keys play no part.

use std::sync::Arc;

use ikada_state::{Namespace, WorkerId};

use super::enqueue::task_bytes;
use super::gather::Lane;
use super::{BatchOptions, ItemError, Load, Place};
use crate::client::{Client, Error};
use crate::convert::{AnyProgram, complete_order};
use crate::problem::Problem;
use crate::v1::{CompleteItem, CompleteRequest, ItemOutcome, OutputItem};

/// Bytes of a completion's document besides its texts: names of fields, quotes, the fence.
const FRAME_BYTES: usize = 96;

/// Completes tasks of one worker in batches; clones share the batches.
#[derive(Clone)]
pub struct Completer {
    lane: Arc<Lane<Completes>>,
}

impl Completer {
    /// A batcher with the usual bounds, for the claims of this worker.
    pub fn new(client: Client, worker: impl Into<String>) -> Completer {
        Completer::with(client, worker, BatchOptions::default())
    }

    /// A batcher with other bounds.
    pub fn with(client: Client, worker: impl Into<String>, options: BatchOptions) -> Completer {
        Completer { lane: Lane::new(Completes { client, worker: worker.into() }, options) }
    }

    /// Settles one task as done.
    pub async fn complete(&self, item: CompleteItem) -> Result<ItemOutcome, ItemError> {
        self.lane.submit(item.with_raw_result()).await
    }
}

impl std::fmt::Debug for Completer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Completer").finish_non_exhaustive()
    }
}

/// About how many bytes an output takes on the wire.
fn output_bytes(output: &OutputItem) -> usize {
    FRAME_BYTES + 64 + output.name.len() + output.chunks.len() * 72
}

struct Completes {
    client: Client,
    worker: String,
}

impl Load for Completes {
    type Item = CompleteItem;

    fn client(&self) -> &Client {
        &self.client
    }

    fn bytes(item: &CompleteItem) -> usize {
        let result = item.result_bytes.as_ref().map_or(0, |result| result.0.len());
        let base64 = item.result_base64.as_ref().map_or(0, String::len);
        let then: usize = item.then.iter().map(task_bytes).sum();
        let outputs: usize = item.outputs.iter().map(output_bytes).sum();
        FRAME_BYTES + item.id.len() + result + base64 + then + outputs
    }

    async fn send(
        &self,
        key: &str,
        items: &mut Vec<CompleteItem>,
    ) -> Result<Vec<ItemOutcome>, Error> {
        let tasks = std::mem::take(items);
        let request = CompleteRequest { worker: self.worker.clone(), tasks, claim: None };
        let answer = self.client.complete_once(key, &request).await;
        *items = request.tasks;
        Ok(answer?.tasks)
    }

    fn check(&self, item: &CompleteItem) -> Option<Problem> {
        // A bad worker name is every item's fault; it is left to the server's words.
        let worker = WorkerId::parse(&self.worker).ok()?;
        Some(Problem::from(
            &complete_order(&Namespace::default(), &worker, item, &AnyProgram).err()?,
        ))
    }

    fn pin(&self, _key: &str, _items: &mut [CompleteItem]) {}

    fn name(&self, _key: &str, _place: usize, item: &CompleteItem) -> (String, Option<Place>) {
        (item.id.clone(), None)
    }
}
