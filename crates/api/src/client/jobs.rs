//! Jobs: submit, look, follow, cancel.

use std::time::Duration;

use hyper::Method;

use super::send::Ask;
use super::url::{escape, unique_key, with_query};
use super::{Client, Consistency, Error};
use crate::v1::{JobInfo, JobPage, JobResult, JobTaskPage, NewJob};

/// How long one call waits for a job to change.
const FOLLOW_MS: u64 = 10_000;

impl Client {
    /// Submits a job.
    pub async fn submit_job(&self, job: &NewJob) -> Result<JobInfo, Error> {
        self.submit_job_as(&unique_key(), job).await
    }

    /// Submits a job under a request id of the caller's: asked again, it answers as the first time.
    pub async fn submit_job_as(&self, key: &str, job: &NewJob) -> Result<JobInfo, Error> {
        self.ask(&Ask::json(Method::POST, "/v1/jobs".to_owned(), job, Some(key.to_owned()))?).await
    }

    /// One job, with every write acknowledged so far.
    pub async fn job(&self, id: &str) -> Result<JobInfo, Error> {
        self.job_at(id, &Consistency::Linearizable).await
    }

    /// One job, as fresh as asked for.
    pub async fn job_at(&self, id: &str, consistency: &Consistency) -> Result<JobInfo, Error> {
        self.ask(&Ask::get(with_query(&job_path(id, ""), &consistency.pairs()))).await
    }

    /// A page of jobs.
    pub async fn jobs(&self, after: Option<&str>) -> Result<JobPage, Error> {
        let query: Vec<_> = after.map(|after| ("after", after.to_owned())).into_iter().collect();
        self.ask(&Ask::get(with_query("/v1/jobs", &query))).await
    }

    /// A page of jobs, those first that were submitted last.
    pub async fn newest_jobs(&self, after: Option<&str>, limit: u32) -> Result<JobPage, Error> {
        let mut query = vec![("order", "newest".to_owned()), ("limit", limit.to_string())];
        query.extend(after.map(|after| ("after", after.to_owned())));
        self.ask(&Ask::get(with_query("/v1/jobs", &query))).await
    }

    /// What a job came to, with the first of its outputs; `next` says that there are more.
    pub async fn job_result(&self, id: &str) -> Result<JobResult, Error> {
        self.job_result_after(id, None).await
    }

    /// The same with the outputs of another page: after the `next` of the page before.
    pub async fn job_result_after(
        &self,
        id: &str,
        after: Option<&str>,
    ) -> Result<JobResult, Error> {
        let query: Vec<_> = after.map(|after| ("after", after.to_owned())).into_iter().collect();
        self.ask(&Ask::get(with_query(&job_path(id, "/result"), &query))).await
    }

    /// A page of a job's tasks.
    pub async fn job_tasks(
        &self,
        id: &str,
        stage: Option<&str>,
        after: Option<&str>,
    ) -> Result<JobTaskPage, Error> {
        let mut query = Vec::new();
        query.extend(stage.map(|stage| ("stage", stage.to_owned())));
        query.extend(after.map(|after| ("after", after.to_owned())));
        self.ask(&Ask::get(with_query(&job_path(id, "/tasks"), &query))).await
    }

    /// Waits for a change since a revision, or the end; answers after a while in any case.
    pub async fn follow_job(&self, id: &str, after: u64) -> Result<JobInfo, Error> {
        let query = [("after", after.to_string()), ("wait_ms", FOLLOW_MS.to_string())];
        let mut ask = Ask::get(with_query(&job_path(id, "/events"), &query));
        ask.hold = Duration::from_millis(FOLLOW_MS);
        self.ask(&ask).await
    }

    /// Cancels a job.
    pub async fn cancel_job(&self, id: &str) -> Result<JobInfo, Error> {
        self.ask(&Ask::act(Method::POST, job_path(id, "/cancel"), Some(unique_key()))).await
    }
}

fn job_path(id: &str, rest: &str) -> String {
    format!("/v1/jobs/{}{rest}", escape(id))
}
