//! Follows a job with a bar per stage.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::JobInfo;
use indicatif::{MultiProgress, ProgressBar};

use crate::failure::Failure;
use crate::render::bar;

/// Wait before asking again after an answer that did not come.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a job is asked for in vain before giving up.
const FAILURES_MAX: u32 = 60;

/// Waits for the end of a job and shows how far it is.
pub(crate) async fn follow(client: &Client, id: &str) -> Result<JobInfo, Failure> {
    let (bars, mut shown, mut failures) = (MultiProgress::new(), Vec::new(), 0);
    let expansion = bars.add(bar(1, "begun"));
    expansion.set_prefix(format!("{:<12} ", "expansion"));
    let mut revision = 0;
    loop {
        let job = match client.follow_job(id, revision).await {
            Ok(job) => job,
            // Nodes come and go; the job goes on.
            Err(Error::Unavailable { .. } | Error::Unknown { .. }) if failures < FAILURES_MAX => {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        failures = 0;
        revision = job.revision;
        draw_expansion(&expansion, &job);
        draw(&bars, &mut shown, &job);
        if job.is_finished() {
            shown.iter().for_each(ProgressBar::finish_and_clear);
            return Ok(job);
        }
    }
}

/// How many tasks have come into being, while more are to come.
fn draw_expansion(bar: &ProgressBar, job: &JobInfo) {
    let begun: u64 = job.stages.iter().map(|stage| u64::from(stage.begun)).sum();
    bar.set_length(job.tasks_total);
    bar.set_position(begun);
    if begun >= job.tasks_total || job.is_finished() {
        bar.finish_and_clear();
    }
}

fn draw(bars: &MultiProgress, shown: &mut Vec<ProgressBar>, job: &JobInfo) {
    for (place, stage) in job.stages.iter().enumerate() {
        if shown.len() <= place {
            let bar = bars.add(bar(u64::from(stage.tasks), "tasks"));
            bar.set_prefix(format!("{:<12} ", stage.name));
            shown.push(bar);
        }
        shown[place].set_message(match (stage.claimed, stage.dead) {
            (0, 0) => String::new(),
            (claimed, 0) => format!("{claimed} running"),
            (claimed, dead) => format!("{claimed} running, {dead} dead"),
        });
        shown[place].set_position(u64::from(stage.done));
    }
}

/// What the end of a job means for the exit code.
pub(crate) fn judge(job: &JobInfo) -> Result<(), Failure> {
    match job.status.as_str() {
        "done" => Ok(()),
        "error" => {
            let reason = job.reason.as_deref().unwrap_or("no reason given");
            let next = format!("look at its tasks: ikada job tasks {}", job.id);
            Err(Failure::failed_next(format!("job {} failed: {reason}", job.id), next))
        }
        status => Err(Failure::failed(format!("job {} is {status}", job.id))),
    }
}
