//! `ikada bench jobs`: what jobs cost beyond the work itself, phase by phase, on a cluster of the bench's own.
//!
//! Every figure stands beside what the same machine does without the cluster, measured in the same run: processes started
//! in a bare loop, whole lives of plain tasks, a count by threads alone. A job that does not end as it should, or a result
//! that differs from the plain one, fails the run.

mod commands;
mod crew;
mod expansion;
mod handlers;
mod report;
mod rival;
mod words;

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{ClientOptions, Consistency, Error};
use ikada_api::v1::{JobInfo, NewJob, NewProgram, NewStage, RangeBody};
use ikada_worker::{Claimed, Handle, TaskError, Worker};

pub(in crate::bench) use self::report::JobsReport;
use self::report::Row;
use crate::args::{JobsBenchArgs, JobsPhase};
use crate::failure::Failure;
use crate::local::{Nodes, Shape};
use crate::render::bar;

/// How long the nodes may take to agree on leaders.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Longer than any call of a bench should take: a stall shows as a slow figure, not as an error.
const CALL_PATIENCE: Duration = Duration::from_secs(60);
/// How often a job is looked at: each look costs the nodes something, and comes late by half of this.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A job that gets nowhere for this long has failed.
const STALL_PATIENCE: Duration = Duration::from_secs(120);
/// The function that handler workers have.
const NOTHING: &str = "bench-nothing";
/// Workers that run functions, and slots of each: as many claims in flight as the queue's bench has.
const HANDLER_WORKERS: u32 = 8;
const HANDLER_SLOTS: u32 = 200;

/// What the phases share.
struct Bench<'a> {
    args: &'a JobsBenchArgs,
    nodes: Nodes,
    client: Client,
    rows: Vec<Row>,
}

/// Runs the phases that were asked for, in order.
pub(in crate::bench) async fn measure(args: &JobsBenchArgs) -> Result<JobsReport, Failure> {
    let shape = Shape { name: "bench", nodes: args.nodes, shards: args.shards };
    let mut nodes = Nodes::prepare(shape)?;
    nodes.start_missing()?;
    nodes.agree(START_PATIENCE).await?;
    let options = ClientOptions { timeout: CALL_PATIENCE, ..ClientOptions::default() };
    let client = Client::with(nodes.urls(), options)?;
    let mut bench = Bench { args, nodes, client, rows: Vec::new() };
    for phase in JobsPhase::ALL {
        if args.only.is_empty() || args.only.contains(&phase) {
            bench.run(phase).await?;
            bench.nodes.check_alive()?;
        }
    }
    let Bench { mut nodes, rows, .. } = bench;
    nodes.stop().await;
    Ok(JobsReport { nodes: args.nodes, shards: args.shards, rows })
}

impl Bench<'_> {
    async fn run(&mut self, phase: JobsPhase) -> Result<(), Failure> {
        match phase {
            JobsPhase::Commands => self.commands().await,
            JobsPhase::Handlers => self.handlers().await,
            JobsPhase::Words => self.words().await,
            JobsPhase::Expansion => self.expansion().await,
        }
    }

    fn note(&mut self, row: Row) {
        eprintln!("{}", row.headline());
        self.rows.push(row);
    }

    /// Runs a job to its end; gives it and the seconds since its submission.
    async fn timed(&self, job: &NewJob) -> Result<(JobInfo, f64), Failure> {
        let began = Instant::now();
        let id = self.client.submit_job(job).await?.id;
        let ended = self.ended(&id, |_| ()).await?;
        Ok((ended, began.elapsed().as_secs_f64()))
    }

    /// Waits until a job is done, and shows it at every look.
    async fn ended(&self, id: &str, mut look: impl FnMut(&JobInfo)) -> Result<JobInfo, Failure> {
        let (mut seen, mut moved) = (0, Instant::now());
        let bar = bar(0, "tasks");
        loop {
            // As its node knows it: asking the others as well would take their time from the job.
            let job = match self.client.job_at(id, &Consistency::Stale).await {
                // It has not heard of the job yet.
                Err(Error::Refused(problem)) if &*problem.code == "job_not_found" => {
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
                job => job?,
            };
            look(&job);
            bar.set_length(job.tasks_total);
            bar.set_position(job.tasks_done);
            match job.status.as_str() {
                "done" => {
                    bar.finish_and_clear();
                    return Ok(job);
                }
                "error" | "cancelled" => {
                    let why = job.reason.unwrap_or_default();
                    return Err(Failure::failed(format!("job {id} is {}: {why}", job.status)));
                }
                _ => {}
            }
            if job.tasks_done > seen {
                (seen, moved) = (job.tasks_done, Instant::now());
            } else if moved.elapsed() > STALL_PATIENCE {
                let total = job.tasks_total;
                return Err(Failure::failed(format!("job {id} stands still at {seen} of {total}")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Workers of this process, in a queue of their own, whose function does nothing.
    async fn handler_workers(&self, queue: &str) -> Result<Vec<Handle>, Failure> {
        let (name, kind) = (NOTHING.to_owned(), "handler".to_owned());
        self.client.push_program(&NewProgram { name, kind, ..NewProgram::default() }).await?;
        let begin = |number: u32| {
            let worker = Worker::new(self.client.clone()).name(format!("{queue}-{number}"));
            let worker = worker.slots(HANDLER_SLOTS).queue(queue);
            let worker = worker.function(NOTHING, |_: Claimed| async { Ok::<(), TaskError>(()) });
            worker.start().map_err(|error| Failure::failed(error.to_string()))
        };
        (0..HANDLER_WORKERS).map(begin).collect()
    }
}

/// The middle of the figures of all rounds; of an even number, the upper one.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A job of so many tasks that all run one program.
fn plain_job(queue: &str, program: &str, tasks: u64) -> NewJob {
    let range = Some(RangeBody { from: 0, to: tasks, step: None });
    NewJob {
        queue: Some(queue.to_owned()),
        map: Some(NewStage { program: program.to_owned(), range, ..NewStage::default() }),
        ..NewJob::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 3.0);
        assert!(median(&mut []).is_nan());
    }
}
