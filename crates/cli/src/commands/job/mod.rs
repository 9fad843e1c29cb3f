//! `ikada job run|submit|list|show|tasks|wait|result|logs|cancel`. Progress goes to standard error, results to standard output.

mod address;
mod cut;
mod follow;
mod gather;
mod pattern;
mod result;
mod run;
mod submit;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{JobInfo, JobPage, JobTaskPage};

use super::confirm::{ask, is_asked};
use super::watch::watch;
use crate::args::{JobCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// The selector of the newest job.
const LAST: &str = "last";
/// Jobs that are asked for at one time.
const PAGE: u32 = 1_000;

pub(crate) async fn job(
    shared: &SharedArgs,
    command: JobCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        JobCommand::Run(args) => run::run(&client, *args, screen).await,
        JobCommand::Submit(args) => submit::submit(&client, args, screen).await,
        JobCommand::List(args) => watch(&args, screen, || newest_first(&client)).await,
        JobCommand::Show(job) => {
            let id = select(&client, &job.id).await?;
            screen.show(&client.job(&id).await?)
        }
        JobCommand::Tasks(args) => {
            let id = select(&client, &args.job.id).await?;
            tasks(&client, &id, args.stage.as_deref(), screen).await
        }
        JobCommand::Wait(job) => {
            let id = select(&client, &job.id).await?;
            let ended = follow::follow(&client, &id).await?;
            screen.show(&ended)?;
            follow::judge(&ended)
        }
        JobCommand::Result(args) => {
            let id = select(&client, &args.job.id).await?;
            result::print(&client, &id, args.to.as_deref(), screen).await
        }
        JobCommand::Logs(args) => {
            let id = select(&client, &args.job.id).await?;
            super::logs::job_logs(shared, &id, args.follow).await
        }
        JobCommand::Cancel(args) => {
            let id = select(&client, &args.job.id).await?;
            if is_asked(args.yes) {
                let JobInfo { tasks_done, tasks_total, .. } = client.job(&id).await?;
                let open = tasks_total.saturating_sub(tasks_done);
                ask(&format!(
                    "Cancel job {id}, {open} of whose {tasks_total} tasks are not done?"
                ))?;
            }
            screen.show(&client.cancel_job(&id).await?)
        }
    }
}

/// All jobs, the newest first.
async fn newest_first(client: &Client) -> Result<JobPage, Error> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = client.newest_jobs(after.as_deref(), PAGE).await?;
        jobs.extend(page.jobs);
        after = page.next;
        if after.is_none() {
            return Ok(JobPage { jobs, next: None });
        }
    }
}

/// The job that a selector means.
async fn select(client: &Client, selector: &str) -> Result<String, Failure> {
    if selector != LAST {
        return Ok(selector.to_owned());
    }
    let newest = client.newest_jobs(None, 1).await?.jobs.pop();
    let newest = newest.ok_or_else(|| Failure::failed("there are no jobs"))?;
    Ok(newest.id)
}

async fn tasks(
    client: &Client,
    id: &str,
    stage: Option<&str>,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut after: Option<String> = None;
    loop {
        let page = client.job_tasks(id, stage, after.as_deref()).await?;
        let next = page.next.clone();
        let page = JobTaskPage { next: None, ..page };
        match after {
            None => screen.show(&page)?,
            Some(_) => screen.show_next(&page)?,
        }
        after = next;
        if after.is_none() {
            return Ok(());
        }
    }
}
