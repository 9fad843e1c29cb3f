//! What a worker needs: claim, complete, fail, renew.

use std::time::Duration;

use super::send::Ask;
use super::url::{escape, unique_key};
use super::{Client, Error};
use crate::v1::{
    ClaimAnswer, ClaimRequest, CompleteItem, CompleteRequest, FailRequest, ItemOutcome,
    NewCheckpoint, NewTask, OutcomeList, RenewRequest,
};

/// Whether follow-ups, or theirs, name programs.
fn names_program(tasks: &[NewTask]) -> bool {
    tasks.iter().any(|task| task.program.is_some() || names_program(&task.then))
}

impl Client {
    /// Takes tasks, waiting for some as long as the request says. A resend within this call returns the same tasks.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<ClaimAnswer, Error> {
        self.claim_as(&unique_key(), request).await
    }

    /// Takes tasks under a request id of the caller's: asked again, it returns the tasks of the first time that are
    /// still claimed.
    pub async fn claim_as(&self, key: &str, request: &ClaimRequest) -> Result<ClaimAnswer, Error> {
        let mut ask = Ask::hot("/v1/tasks/claim", request, Some(key.to_owned()))?;
        ask.hold = Duration::from_millis(request.wait_ms);
        self.ask(&ask).await
    }

    /// Settles tasks as done. Safe to repeat: the fence makes it idempotent.
    pub async fn complete(&self, request: &CompleteRequest) -> Result<OutcomeList, Error> {
        self.complete_and_claim(&unique_key(), request).await
    }

    /// Settles tasks as done and takes others in their place, in one call, if the request has a claim; the key is the claim's, as in
    /// [`Client::claim_as`]. The tasks taken are absent where nobody knows: claim again under the key.
    pub async fn complete_and_claim(
        &self,
        key: &str,
        request: &CompleteRequest,
    ) -> Result<OutcomeList, Error> {
        let tasks = request.tasks.iter().map(CompleteItem::with_raw_result).collect();
        let (worker, claim) = (request.worker.clone(), request.claim.clone());
        let request = CompleteRequest { worker, tasks, claim };
        self.settle(&Self::completion(key, &request)?, |answer: &OutcomeList| &answer.tasks).await
    }

    /// Sends completions until they are answered; items that are not settled are left to the caller.
    pub(crate) async fn complete_once(
        &self,
        key: &str,
        request: &CompleteRequest,
    ) -> Result<OutcomeList, Error> {
        self.ask(&Self::completion(key, request)?).await
    }

    fn completion(key: &str, request: &CompleteRequest) -> Result<Ask, Error> {
        let mut ask = Ask::hot("/v1/tasks/complete", request, Some(key.to_owned()))?;
        // Whether outputs are stored is asked of all nodes first, and programs are looked up: that takes its time, and
        // nodes of older versions do it by the route alone.
        let waits = |task: &CompleteItem| !task.outputs.is_empty() || names_program(&task.then);
        ask.piped = !request.tasks.iter().any(waits);
        Ok(ask)
    }

    /// Ends attempts as failed. Safe to repeat.
    pub async fn fail(&self, request: &FailRequest) -> Result<OutcomeList, Error> {
        self.report("/v1/tasks/fail", request).await
    }

    /// Keeps how far an attempt has come, for the next one. Safe to repeat; a claim that is lost is refused.
    pub async fn checkpoint(&self, id: &str, checkpoint: &NewCheckpoint) -> Result<(), Error> {
        let path = format!("/v1/tasks/{}/checkpoint", escape(id));
        let mut ask = Ask::hot(&path, checkpoint, None)?;
        ask.piped = false;
        self.ask::<ItemOutcome>(&ask).await.map(|_| ())
    }

    /// Keeps claims alive, and says what a session holds. Unsettled items are left to the caller, who renews again anyway.
    pub async fn renew(&self, request: &RenewRequest) -> Result<OutcomeList, Error> {
        self.ask(&Ask::hot("/v1/tasks/renew", request, None)?).await
    }

    async fn report<T: serde::Serialize>(
        &self,
        path: &str,
        request: &T,
    ) -> Result<OutcomeList, Error> {
        let ask = Ask::hot(path, request, Some(unique_key()))?;
        self.settle(&ask, |answer: &OutcomeList| &answer.tasks).await
    }
}
