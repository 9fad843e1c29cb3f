//! `ikada demo`: three node processes, thousands of tasks, a leader killed in the middle, and a strict count at the end.
//!
//! It uses the public API only, so that it shows what any client can rely on.

mod check;
mod report;
mod strike;
mod work;

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use ikada_api::v1::{BackoffBody, QueueSettingsBody};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::local::{Nodes, Shape, compare_copies, until_interrupted};
use report::Report;
use work::Crew;

/// The queue of the demo's tasks.
const QUEUE: &str = "demo";
/// Three nodes must have leaders within this time.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Without any progress for this long, something is wrong.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// How often progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The demo's cluster.
const SHAPE: Shape = Shape { name: "demo", nodes: 3, shards: 4 };

/// Runs the demo.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    until_interrupted(perform(args)).await
}

async fn perform(args: &DemoArgs) -> Result<(), Failure> {
    let mut nodes = Nodes::prepare(SHAPE)?;
    eprintln!("starting three nodes in {}", nodes.folder().display());
    let began = Instant::now();
    nodes.start_missing()?;
    let client = Client::with(
        nodes.urls(),
        ClientOptions { timeout: Duration::from_secs(20), ..ClientOptions::default() },
    )?;
    nodes.settle(START_PATIENCE).await?;
    let started = began.elapsed();
    eprintln!("three nodes have agreed on leaders after {} ms", started.as_millis());
    prepare(&client, args.tasks).await?;
    let began = Instant::now();
    let crew = Crew::start(&nodes.urls())?;
    let submit = tokio::spawn(work::submit(client.clone(), args.tasks));
    let strike = progress(args.tasks, &mut nodes, &crew, &submit).await?;
    submit.await.map_err(|error| Failure::failed(format!("submitting tasks: {error}")))??;
    let worked = began.elapsed();
    let tally = crew.stop().await;
    nodes.check_alive()?;
    let counted = check::count(&client, args.tasks).await?;
    let copies = compare_copies(&nodes.urls()).await?;
    let report = Report { tasks: args.tasks, started, worked, strike, tally, counted, copies };
    eprintln!();
    crate::render::write(&report.text())?;
    if args.keep {
        let urls = nodes.urls();
        eprintln!(
            "\nthe cluster stays up until Ctrl-C; in another terminal try:\n  export IKADA_URL={}\n  \
             ikada cluster status\n  ikada task list --queue {QUEUE}",
            urls.join(",")
        );
        std::future::pending::<()>().await;
    }
    nodes.stop().await;
    report
        .verdict()
        .map_err(|problems| Failure::failed_next(problems.join("; "), nodes.keep_logs()))
}

/// Settings that suit the demo: every finished task stays listed, and a stranded claim returns soon.
async fn prepare(client: &Client, tasks: u32) -> Result<(), Failure> {
    let settings = QueueSettingsBody {
        retention_count: Some(tasks),
        ttl_ms: Some(3_000),
        max_attempts: Some(50),
        backoff: Some(BackoffBody { base_ms: 50, cap_ms: 1_000 }),
        ..QueueSettingsBody::default()
    };
    client.set_queue(QUEUE, &settings).await?;
    Ok(())
}

/// Shows progress, strikes when a third is done, and returns when all is done.
async fn progress(
    tasks: u32,
    nodes: &mut Nodes,
    crew: &Crew,
    submit: &JoinHandle<Result<(), Failure>>,
) -> Result<strike::Strike, Failure> {
    let bar = ProgressBar::new(u64::from(tasks));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} tasks {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut struck: Option<JoinHandle<Result<strike::Strike, Failure>>> = None;
    let (mut seen, mut moved) = (0, Instant::now());
    let (mut gap, mut killed) = (Duration::ZERO, None);
    loop {
        let done = crew.completed();
        bar.set_position(done.min(u64::from(tasks)));
        if done > seen {
            // The longest silence that a killed leader caused.
            if killed.is_some() {
                gap = gap.max(moved.elapsed());
            }
            (seen, moved) = (done, Instant::now());
        }
        if moved.elapsed() > STALL_PATIENCE {
            let detail = format!("{done} of {tasks} tasks are done, and nothing moves");
            return Err(Failure::failed_next(detail, nodes.keep_logs()));
        }
        if struck.is_none() && done >= u64::from(tasks) / 3 {
            let target = strike::choose(nodes).await?;
            nodes.kill(target.node)?;
            (killed, moved) = (Some(Instant::now()), Instant::now());
            bar.suspend(|| eprintln!("{done} of {tasks} tasks done: kill -9 of {target}"));
            struck = Some(tokio::spawn(strike::watch(nodes.urls_running(), target)));
        }
        if killed.is_some_and(|at: Instant| at.elapsed() > Duration::from_secs(1)) {
            nodes.start_missing()?;
        }
        if done >= u64::from(tasks) && submit.is_finished() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bar.finish_and_clear();
    nodes.start_missing()?;
    let Some(struck) = struck else {
        return Err(Failure::failed("no leader was killed: the tasks were done too soon"));
    };
    let strike = struck
        .await
        .map_err(|error| Failure::failed(format!("watching the election: {error}")))??;
    Ok(strike::Strike { gap, ..strike })
}
