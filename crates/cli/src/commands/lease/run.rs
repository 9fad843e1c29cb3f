//! `ikada lease run`: a command that runs only while its lease is held.
//!
//! The command is the leader of a process group of its own, so that everything it started ends with it. A lost lease, or a
//! request to stop, ends the group; the lease is given back only after that.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{LeaseGuard, LeaseOptions, unique_key};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::LeaseRunArgs;
use crate::failure::Failure;

/// How the command came to its end.
enum End {
    Exited(ExitStatus),
    Lost,
    Stopped,
}

pub(super) async fn run(client: &Client, args: LeaseRunArgs) -> Result<(), Failure> {
    let holder = args.holder.clone().unwrap_or_else(unique_key);
    loop {
        let options = LeaseOptions {
            holder: holder.clone(),
            ttl: Duration::from_millis(u64::from(args.ttl_ms)),
            wait: match (args.no_wait, args.wait_ms) {
                (true, _) => Some(Duration::ZERO),
                (false, wait_ms) => wait_ms.map(Duration::from_millis),
            },
            task: None,
        };
        let guard = client.hold_lease(&args.name, options).await?;
        match run_once(guard, &args).await? {
            End::Exited(status) => return passed_on(status),
            End::Stopped => return Err(Failure::failed("told to stop; the command was ended")),
            End::Lost if args.again => {
                eprintln!("ikada: lease {} was lost; waiting for it again", args.name);
            }
            End::Lost => {
                let message = format!("lease {} was lost; the command was ended", args.name);
                let next = "run it again, or use --again to wait for the lease anew".to_owned();
                return Err(Failure::Unavailable { message, next });
            }
        }
    }
}

async fn run_once(mut guard: LeaseGuard, args: &LeaseRunArgs) -> Result<End, Failure> {
    let (program, arguments) =
        args.command.split_first().ok_or_else(|| Failure::usage("name the command after --"))?;
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    let spawned = Command::new(program)
        .args(arguments)
        .env("IKADA_LEASE", &args.name)
        .env("IKADA_FENCE", guard.fence().to_string())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            give_back(guard).await;
            let program = program.to_string_lossy();
            return Err(Failure::failed(format!("{program} could not be started: {error}")));
        }
    };
    let end = tokio::select! {
        status = child.wait() => match status {
            Ok(status) => End::Exited(status),
            Err(error) => return Err(Failure::failed(format!("the command: {error}"))),
        },
        () = guard.lost() => End::Lost,
        _ = tokio::signal::ctrl_c() => End::Stopped,
        _ = terminate.recv() => End::Stopped,
    };
    match end {
        End::Exited(_) => {}
        End::Lost => end_group(&mut child, Duration::from_millis(args.grace_ms)).await,
        End::Stopped => end_group(&mut child, Duration::from_secs(5)).await,
    }
    if !matches!(end, End::Lost) {
        give_back(guard).await;
    }
    Ok(end)
}

/// Asks the whole group to end, then kills what is left of it.
async fn end_group(child: &mut Child, grace: Duration) {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(group) = group.filter(|_| !grace.is_zero()) {
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::time::timeout(grace, child.wait()).await;
    }
    // The leader may be gone while others of its group are not.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait().await;
}

/// The work is done; if the cluster cannot hear of it now, the ttl frees the lease.
async fn give_back(guard: LeaseGuard) {
    if let Err(error) = guard.release().await {
        eprintln!("ikada: the lease ends by its ttl: {error}");
    }
}

/// The command's own exit code; 128 and the number of the signal that ended it.
fn passed_on(status: ExitStatus) -> Result<(), Failure> {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Failure::Command { message: format!("the command ended: {status}"), code }),
    }
}
