//! The `ikada` binary: reads arguments, runs one command, chooses the exit code.
//!
//! Data goes to standard output, talk to standard error. Exit codes are chosen here and nowhere else: 0 done, 1 failed,
//! 2 wrong usage, 3 unavailable (try again), 4 refused (trying again does not help). Only `lease run` passes its command's own code on.

mod advice;
mod args;
mod bench;
mod commands;
mod contexts;
mod demo;
mod failure;
mod local;
mod render;
mod typed_url;
mod verify;

use std::process::ExitCode;

use args::{Cli, Command};
use failure::Failure;
use render::Screen;

/// Applying commands allocates much and small; this allocator does that faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Helpers of a worker restrict themselves, which must happen before any thread exists.
    if let Some(code) = ikada_worker::sandbox::helper() {
        return code;
    }
    if let Some(code) = commands::lease_companion() {
        return code;
    }
    let cli = args::read();
    if matches!(cli.command, Command::Server(_) | Command::Worker(_)) {
        forgo_core_dumps();
    }
    if matches!(cli.command, Command::Server(_) | Command::Bench(_)) {
        allow_open_files();
    }
    let outcome = run(cli);
    match outcome {
        Ok(()) | Err(Failure::Unheard) => ExitCode::SUCCESS,
        Err(failure) => {
            // It may repeat what somebody else has written.
            render::say(&format!("ikada: {failure}"));
            if let Some(next) = failure.next() {
                render::say(&format!("  {next}"));
            }
            ExitCode::from(match failure {
                Failure::Failed { .. } => 1,
                Failure::Usage { .. } => 2,
                Failure::Unavailable { .. } => 3,
                Failure::Refused { .. } => 4,
                Failure::Command { code, .. } => code,
                Failure::Unheard => 0,
            })
        }
    }
}

/// What a long-lived process holds in memory, keys and tokens too, must not land in a file when it crashes (X6).
fn forgo_core_dumps() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    // A bound can always be lowered; where it cannot, there are no core dumps to speak of.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}

/// Every connection is a file: as many as the system allows, not only as many as it gives by itself (X7).
fn allow_open_files() {
    let files = rustix::process::Resource::Nofile;
    let most = rustix::process::getrlimit(files).maximum;
    // Where it cannot be raised, the server takes fewer connections.
    let _ =
        rustix::process::setrlimit(files, rustix::process::Rlimit { current: most, maximum: most });
}

/// Threads for a server's sockets: half the cores, since driver, log and snapshots have threads of their own and idle
/// workers only wake each other.
fn server_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

fn run(cli: Cli) -> Result<(), Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if matches!(cli.command, Command::Server(_)) {
        builder.worker_threads(server_threads());
    }
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("threads could not be started: {error}")))?;
    let mut screen = Screen::new(cli.shared.output, cli.shared.wide);
    runtime.block_on(async {
        match cli.command {
            Command::Server(server) => commands::server(server).await,
            Command::Worker(worker) => commands::worker(&cli.shared, *worker).await,
            Command::Demo(demo) => demo::run(&demo).await,
            Command::Dev(args) => Box::pin(commands::dev(args)).await,
            Command::Bench(command) => bench::run(&cli.shared, &command, &mut screen).await,
            Command::Verify(args) => verify::run(&cli.shared, &args, &mut screen).await,
            Command::Cluster(command) => commands::cluster(&cli.shared, command, &mut screen).await,
            Command::Job(command) => commands::job(&cli.shared, command, &mut screen).await,
            Command::Task(command) => commands::task(&cli.shared, command, &mut screen).await,
            Command::Queue(command) => commands::queue(&cli.shared, command, &mut screen).await,
            Command::Schedule(command) => {
                commands::schedule(&cli.shared, command, &mut screen).await
            }
            Command::Namespace(command) => {
                commands::namespace(&cli.shared, command, &mut screen).await
            }
            Command::Auth(command) => commands::auth(&cli.shared, command, &mut screen).await,
            Command::JoinToken(command) => commands::join_token(command, &mut screen),
            Command::Audit(command) => commands::audit(&command, &mut screen),
            Command::Context(command) => commands::context(&cli.shared, command, &mut screen),
            Command::Program(command) => commands::program(&cli.shared, command, &mut screen).await,
            Command::Doctor(args) => commands::doctor(&cli.shared, &args, &mut screen).await,
            Command::Completions(args) => commands::completions(&args),
            Command::Man(args) => commands::man(&args),
            Command::Object(command) => commands::object(&cli.shared, command, &mut screen).await,
            Command::WorkerPool(command) => {
                commands::worker_pool(&cli.shared, command, &mut screen).await
            }
            Command::Lease(command) => commands::lease(&cli.shared, command, &mut screen).await,
            Command::Request(command) => commands::request(&cli.shared, command, &mut screen).await,
        }
    })
}
