//! `ikada lease run`: a command that runs only while its lease is held.
//!
//! The command lives in a process group of its own, led by its companion (`companion.rs`), so that everything it started ends
//! with it: when it exits, when the lease is lost, at a request to stop, and when this process dies. The lease is given back
//! only after that.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, LeaseGuard, LeaseOptions, unique_key};
use ikada_api::v1::ReleaseLease;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self as signal, SignalKind};

use super::ASK_AGAIN;
use super::companion::{COMPANION, code_of};
use crate::args::LeaseRunArgs;
use crate::failure::Failure;
use crate::render::plain;

/// How long leaving the line may take for one who was told to stop; the place ends by its ttl otherwise.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// Requests to stop, heard from the beginning to the end: whoever waits for a lease is stopped by them too.
struct Stops {
    terminate: signal::Signal,
    interrupt: signal::Signal,
}

impl Stops {
    fn listen() -> Result<Stops, Failure> {
        let heard = |kind| {
            signal::signal(kind)
                .map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))
        };
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Stops { terminate: heard(terminate)?, interrupt: heard(interrupt)? })
    }

    async fn heard(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// How the command came to its end.
enum End {
    Exited(ExitStatus),
    Lost,
    Stopped,
}

pub(super) async fn run(client: &Client, args: LeaseRunArgs) -> Result<(), Failure> {
    let holder = args.holder.clone().unwrap_or_else(unique_key);
    let mut stops = Stops::listen()?;
    loop {
        let guard = tokio::select! {
            guard = take(client, &args, &holder) => guard?,
            () = stops.heard() => return leave_line(client, &args.name, holder).await,
        };
        match run_once(guard, &args, &mut stops).await? {
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

/// Waits for the turn.
async fn take(client: &Client, args: &LeaseRunArgs, holder: &str) -> Result<LeaseGuard, Failure> {
    loop {
        let options = LeaseOptions {
            holder: holder.to_owned(),
            ttl: Duration::from_millis(u64::from(args.ttl_ms)),
            wait: match (args.no_wait, args.wait_ms) {
                (true, _) => Some(Duration::ZERO),
                (false, wait_ms) => wait_ms.map(Duration::from_millis),
            },
            task: None,
        };
        match client.hold_lease(&args.name, options).await {
            Ok(guard) => return Ok(guard),
            // Whoever stands by does so through a time without a cluster too.
            Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) if args.again => {
                let why = plain(&error.to_string());
                eprintln!("ikada: lease {}: {why}; asking again", args.name);
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nobody waits here any more: whoever is next in line need not wait for this place, nor for a grant that just came.
async fn leave_line(client: &Client, lease: &str, holder: String) -> Result<(), Failure> {
    let release = ReleaseLease { holder, ..ReleaseLease::default() };
    // There may be no place, and no cluster to ask.
    let _ = tokio::time::timeout(LEAVE_PATIENCE, client.release_lease(lease, &release)).await;
    Err(Failure::failed("told to stop while waiting for the lease"))
}

async fn run_once(
    mut guard: LeaseGuard,
    args: &LeaseRunArgs,
    stops: &mut Stops,
) -> Result<End, Failure> {
    let mut child = match start(args, guard.fence().0) {
        Ok(child) => child,
        Err(error) => {
            give_back(guard).await;
            return Err(Failure::failed(format!("the command could not be started: {error}")));
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let end = tokio::select! {
        status = child.wait() => match status {
            Ok(status) => End::Exited(status),
            Err(error) => return Err(Failure::failed(format!("the command: {error}"))),
        },
        () = guard.lost() => End::Lost,
        () = stops.heard() => End::Stopped,
    };
    match (&end, group) {
        // Somebody killed the companion alone: it could not tidy up.
        (End::Exited(status), Some(group)) if status.signal().is_some() => {
            let _ = kill_process_group(group, Signal::KILL);
        }
        (End::Exited(_), _) => {}
        (End::Lost, group) => {
            end_group(&mut child, group, Duration::from_millis(args.grace_ms)).await;
        }
        (End::Stopped, group) => end_group(&mut child, group, Duration::from_secs(5)).await,
    }
    if !matches!(end, End::Lost) {
        give_back(guard).await;
    }
    Ok(end)
}

/// Starts the command by way of its companion.
fn start(args: &LeaseRunArgs, fence: u64) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg(COMPANION)
        .arg(std::process::id().to_string())
        .args(&args.command)
        .env("IKADA_LEASE", &args.name)
        .env("IKADA_FENCE", fence.to_string())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Asks the whole group to end, then kills what is left of it.
async fn end_group(child: &mut Child, group: Option<Pid>, grace: Duration) {
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
        eprintln!("ikada: the lease ends by its ttl: {}", plain(&error.to_string()));
    }
}

/// The command's own exit code.
fn passed_on(status: ExitStatus) -> Result<(), Failure> {
    match code_of(status) {
        0 => Ok(()),
        code => Err(Failure::Command { message: format!("the command ended: {status}"), code }),
    }
}
