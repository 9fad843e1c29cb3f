//! `ikada worker`: takes tasks of the named queues and runs their programs until it is told to leave.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ikada_api::Client;
use ikada_worker::exec::{ExecConfig, Exposure, GroupRule, Programs, Sandbox, Urls};
use ikada_worker::sandbox::Isolation;
use ikada_worker::{Worker, builtin};

use super::server::{start_logging, stop_signal};
use crate::args::{SharedArgs, WorkerArgs};
use crate::failure::Failure;

/// Name of the work folder where none is given.
const WORK_DIR: &str = "ikada-work";

/// How often the end of the token is looked at, and how near it may come without a word.
const TOKEN_LOOK_EVERY: Duration = Duration::from_secs(24 * 3_600);
const TOKEN_LEFT_S_MIN: u64 = 7 * 24 * 3_600;

pub(crate) async fn worker(shared: &SharedArgs, args: WorkerArgs) -> Result<(), Failure> {
    start_logging("info");
    work(shared, args).await
}

/// Works until it is told to leave.
pub(super) async fn work(shared: &SharedArgs, args: WorkerArgs) -> Result<(), Failure> {
    let client = shared.client()?;
    let sandbox =
        Sandbox::open(config(&args)?).map_err(|error| Failure::usage(error.to_string()))?;
    describe(&args, &sandbox);
    guard_secrets(&shared.secret_files()?, &args, &sandbox)?;
    let urls = Urls {
        inputs: args.allow_url.clone(),
        outputs: args.allow_output_url.clone(),
        near: args.near.clone(),
    };
    tokio::spawn(watch_token(client.clone()));
    let mut worker = builtin::equip(Worker::new(client.clone()), &client, &urls);
    let programs = Programs::new(client.clone(), sandbox, urls);
    worker = worker
        .slots(args.slots)
        .drain_timeout(Duration::from_secs(args.drain_s))
        .programs(Arc::new(programs));
    for queue in args.queue {
        worker = worker.queue(queue);
    }
    for (name, value) in args.labels {
        worker = worker.label(name, value);
    }
    if let Some(name) = args.name {
        worker = worker.name(name);
    }
    let stop = stop_signal(args.until_stdin_closes)?;
    let tally = worker.run_until(stop).await.map_err(|error| Failure::usage(error.to_string()))?;
    tracing::info!(
        begun = tally.begun,
        completed = tally.completed,
        failed = tally.failed,
        lost = tally.lost,
        "the worker has left"
    );
    Ok(())
}

fn config(args: &WorkerArgs) -> Result<ExecConfig, Failure> {
    let helper = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("this binary has no path: {error}")))?;
    let work_dir = args.work_dir.clone().unwrap_or_else(|| std::env::temp_dir().join(WORK_DIR));
    let work_dir = std::path::absolute(&work_dir)
        .map_err(|error| Failure::usage(format!("work folder {}: {error}", work_dir.display())))?;
    Ok(ExecConfig {
        work_dir,
        commands: args.allow_command.clone(),
        readable: args.allow_read.clone(),
        network: args.allow_network,
        isolation: args.isolation.into(),
        limits: args.limits(),
        groups: args.control_groups.into(),
        helper,
    })
}

/// Warns once a day while the end of this worker's token is near. A node that cannot tell is no reason to warn.
async fn watch_token(client: Client) {
    loop {
        let ends = client.whoami().await.ok().and_then(|who| who.expires_ms);
        let left_s = ends.map(|ends| (ends / 1_000).saturating_sub(now_s()));
        if let Some(left_s) = left_s.filter(|left| *left < TOKEN_LEFT_S_MIN) {
            tracing::warn!(
                hours_left = left_s / 3_600,
                "this worker's token ends soon: put a fresh one of the same name into its file, and start the worker again"
            );
        }
        tokio::time::sleep(TOKEN_LOOK_EVERY).await;
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Refuses to let commands run that could read what this worker shows to the cluster; whoever has it can claim the tasks of
/// others. Modules reach no files at all.
fn guard_secrets(files: &[PathBuf], args: &WorkerArgs, sandbox: &Sandbox) -> Result<(), Failure> {
    for file in files.iter().filter(|_| !args.allow_command.is_empty()) {
        let shown = file.display();
        match sandbox.exposure(file) {
            Exposure::Closed => {}
            Exposure::Unsure(why) => tracing::warn!(
                file = %shown,
                why,
                "commands of tasks may be able to read this worker's credentials"
            ),
            Exposure::Open(what) => {
                let message = format!("{shown}: commands of tasks could read it; {what}");
                return Err(Failure::usage(message));
            }
        }
    }
    Ok(())
}

/// Says what programs may do here, so that nobody has to guess.
fn describe(args: &WorkerArgs, sandbox: &Sandbox) {
    let walls = sandbox.walls();
    let commands = match args.allow_command.is_empty() {
        true => "none".to_owned(),
        false => args.allow_command.join(", "),
    };
    tracing::info!(
        slots = args.slots,
        queues = args.queue.join(", "),
        commands,
        namespaces = walls.namespaces,
        landlock = walls.landlock,
        seccomp = walls.seccomp,
        control_groups = sandbox.groups().map_or(0, ikada_worker::exec::Groups::version),
        "the worker takes tasks"
    );
    if let (Err(why), GroupRule::Best) = (sandbox.groups(), sandbox.config().groups) {
        tracing::info!(
            why,
            "no control groups: memory is bounded for each process of a program, not for all together"
        );
    }
    match sandbox.config().isolation {
        Isolation::None => tracing::warn!(
            "programs are NOT isolated (--isolation none): they can do whatever this worker's user can"
        ),
        _ if !walls.is_full() => tracing::warn!(
            missing = walls.missing.join("; "),
            "programs are isolated only in part (--isolation best)"
        ),
        _ => {}
    }
}
