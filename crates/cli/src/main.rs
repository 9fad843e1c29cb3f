//! The `ikada` binary: reads arguments, runs one command, chooses the exit code.
//!
//! Data goes to standard output, talk to standard error. Exit codes are chosen here and nowhere else: 0 done, 1 failed,
//! 2 wrong usage, 3 unavailable (try again), 4 refused (trying again does not help).

mod args;
mod bench;
mod commands;
mod demo;
mod failure;
mod local;
mod render;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;
use render::Screen;

/// Applying commands allocates much and small; this allocator does that faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = run(cli);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ikada: {failure}");
            if let Some(next) = failure.next() {
                eprintln!("  {next}");
            }
            ExitCode::from(match failure {
                Failure::Failed { .. } => 1,
                Failure::Usage { .. } => 2,
                Failure::Unavailable { .. } => 3,
                Failure::Refused { .. } => 4,
            })
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("threads could not be started: {error}")))?;
    let mut screen = Screen::new(cli.shared.output);
    runtime.block_on(async {
        match cli.command {
            Command::Server(server) => commands::server(server).await,
            Command::Demo(demo) => demo::run(&demo).await,
            Command::Bench(command) => bench::run(&cli.shared, &command, &mut screen).await,
            Command::Cluster(command) => commands::cluster(&cli.shared, command, &mut screen).await,
            Command::Task(command) => commands::task(&cli.shared, command, &mut screen).await,
            Command::Queue(command) => commands::queue(&cli.shared, command, &mut screen).await,
            Command::Request(command) => commands::request(&cli.shared, command, &mut screen).await,
        }
    })
}
