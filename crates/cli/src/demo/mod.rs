//! `ikada demo`: three node processes and two workers count the words of a generated corpus; a worker and the leader
//! are killed in the middle, and the result is held against a plain count.
//!
//! It uses the public API only, so that it shows what any client can rely on.

mod corpus;
mod crew;
mod report;
mod strike;

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{ClientOptions, GetOptions};
use ikada_api::v1::{BackoffBody, JobInfo, JobTaskInfo, NewJob, NewReduce, NewStage};
use tokio::task::JoinHandle;

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::local::{NODES_STOPPED, Nodes, Shape, compare_copies, until_interrupted};
use crate::render::bar;
use corpus::Corpus;
pub(crate) use corpus::text as draw_text;
use crew::Crew;
use report::Report;
use strike::Strike;

/// The bucket of the demo's texts.
const BUCKET: &str = "demo";
/// The demo's job.
const JOB: &str = "demo-wordcount";
/// Three nodes must have leaders within this time.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Without any progress for this long, something is wrong.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// How often progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Each task takes at least so long, so that there is something to see.
const PAUSE_MS: u32 = 50;

/// The demo's cluster.
const SHAPE: Shape = Shape { name: "demo", nodes: 3, shards: 4 };

/// Runs the demo.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    until_interrupted(NODES_STOPPED, perform(args)).await
}

async fn perform(args: &DemoArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::prepare(SHAPE)?;
    eprintln!("starting three nodes in {}", nodes.folder().display());
    let began = Instant::now();
    nodes.start_missing()?;
    let options = ClientOptions { timeout: Duration::from_secs(20), ..ClientOptions::default() };
    let client = Client::with(nodes.urls(), options)?;
    nodes.settle(START_PATIENCE).await?;
    let started = began.elapsed();
    eprintln!("three nodes have agreed on leaders after {} ms", started.as_millis());
    let corpus = corpus::upload(&client, args.texts).await?;
    eprintln!("{} texts uploaded, {} words in {} bytes", args.texts, corpus.words, corpus.bytes);
    let mut crew = Crew::start(nodes.folder(), &nodes.urls(), 2)?;
    let began = Instant::now();
    client.submit_job(&job(&corpus)).await?;
    let (ended, strike, (worker, held)) = progress(&client, &mut nodes, &mut crew).await?;
    let worked = began.elapsed();
    let (repeated, lost) = look_at_tasks(&client).await?;
    let result = fetch(&client, &ended).await?;
    nodes.check_alive()?;
    let copies = compare_copies(&nodes.urls()).await?;
    let right = result == corpus.counted;
    let (tasks, words) = (ended.tasks_total, corpus.words);
    let report = Report {
        tasks,
        words,
        started,
        worked,
        strike,
        worker,
        held,
        repeated,
        lost,
        right,
        copies,
    };
    eprintln!();
    crate::render::write(&report.text())?;
    if args.keep {
        eprintln!(
            "\nthe cluster stays up until Ctrl-C; in another terminal try:\n  export IKADA_URL={}\n  \
             ikada job show last\n  ikada job result last | head\n  ikada cluster status",
            nodes.urls().join(",")
        );
        std::future::pending::<()>().await;
    }
    drop(crew);
    nodes.stop().await;
    report
        .verdict()
        .map_err(|problems| Failure::failed_next(problems.join("; "), nodes.keep_logs()))
}

/// Word count with a merge; a stranded claim returns soon.
fn job(corpus: &Corpus) -> NewJob {
    let (map, reduce) = ("wordcount".to_owned(), "merge".to_owned());
    NewJob {
        id: Some(JOB.to_owned()),
        name: Some("words of the demo".to_owned()),
        settings: [("pause-ms".to_owned(), PAUSE_MS.to_string())].into(),
        map: Some(NewStage { program: map, inputs: corpus.inputs.clone(), ..NewStage::default() }),
        reduce: Some(NewReduce { program: reduce, fan_in: Some(16), ..NewReduce::default() }),
        ttl_ms: Some(3_000),
        max_attempts: Some(50),
        backoff: Some(BackoffBody { base_ms: 50, cap_ms: 1_000 }),
        ..NewJob::default()
    }
}

/// Shows progress; kills a worker when a quarter is done and the leader at a half; returns at the end of the job.
async fn progress(
    client: &Client,
    nodes: &mut Nodes,
    crew: &mut Crew,
) -> Result<(JobInfo, Strike, (u32, usize)), Failure> {
    let bar = bar(1, "tasks");
    let (mut worker, mut struck): (_, Option<JoinHandle<_>>) = (None, None);
    let (mut seen, mut moved) = (0, Instant::now());
    let (mut gap, mut killed) = (Duration::ZERO, None);
    let ended = loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if killed.is_some_and(|at: Instant| at.elapsed() > Duration::from_secs(1)) {
            nodes.start_missing()?;
        }
        if moved.elapsed() > STALL_PATIENCE {
            let detail = format!("{seen} tasks are done, and nothing moves");
            return Err(Failure::failed_next(detail, nodes.keep_logs()));
        }
        let Ok(job) = client.job(JOB).await else { continue };
        bar.set_length(job.tasks_total);
        bar.set_position(job.tasks_done);
        if job.tasks_done > seen {
            // The longest silence that a killed leader caused.
            if killed.is_some() {
                gap = gap.max(moved.elapsed());
            }
            (seen, moved) = (job.tasks_done, Instant::now());
        }
        if job.is_finished() {
            break job;
        }
        if worker.is_none() && seen >= job.tasks_total / 4 {
            let (id, name) = crew.kill_one()?;
            bar.suspend(|| eprintln!("{seen} tasks done: kill -9 of worker process {id}"));
            // It can no longer report anything, and its claims live for their ttl: this is what it held.
            worker = Some((id, held_by(client, &name).await));
        }
        if struck.is_none() && seen >= job.tasks_total / 2 {
            let target = strike::choose(nodes).await?;
            nodes.kill(target.node)?;
            (killed, moved) = (Some(Instant::now()), Instant::now());
            bar.suspend(|| eprintln!("{seen} tasks done: kill -9 of {target}"));
            struck = Some(tokio::spawn(strike::watch(nodes.urls_running(), target)));
            crew.add()?;
        }
    };
    bar.finish_and_clear();
    nodes.start_missing()?;
    let (Some(struck), Some(worker)) = (struck, worker) else {
        return Err(Failure::failed(
            "nobody was killed: the job was done too soon; give more --texts",
        ));
    };
    let strike = struck
        .await
        .map_err(|error| Failure::failed(format!("watching the election: {error}")))??;
    Ok((ended, Strike { gap, ..strike }, worker))
}

/// How many tasks a worker holds, as far as can be seen.
async fn held_by(client: &Client, worker: &str) -> usize {
    let (mut held, mut after) = (0, None);
    loop {
        let Ok(page) = client.job_tasks(JOB, None, after.as_deref()).await else { return held };
        let is_its =
            |task: &&JobTaskInfo| task.state == "claimed" && task.worker.as_deref() == Some(worker);
        held += page.tasks.iter().filter(is_its).count();
        after = page.next;
        if after.is_none() {
            return held;
        }
    }
}

/// How many attempts were repeated, and how many tasks are not done.
async fn look_at_tasks(client: &Client) -> Result<(u64, u64), Failure> {
    let (mut repeated, mut lost, mut after) = (0, 0, None);
    loop {
        let page = client.job_tasks(JOB, None, after.as_deref()).await?;
        for task in &page.tasks {
            repeated += u64::from(task.attempts_begun.saturating_sub(1));
            lost += u64::from(task.state != "done");
        }
        after = page.next;
        if after.is_none() {
            return Ok((repeated, lost));
        }
    }
}

/// The bytes of the job's one output; none if it failed.
async fn fetch(client: &Client, job: &JobInfo) -> Result<Vec<u8>, Failure> {
    let result = client.job_result(&job.id).await?;
    let [output] = result.outputs.as_slice() else {
        return Ok(Vec::new());
    };
    let reader = client.get_object(&output.bucket, &output.key, &GetOptions::default()).await?;
    Ok(reader.collect().await?)
}
