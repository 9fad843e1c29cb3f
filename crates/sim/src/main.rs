//! The simulator's command line: data on stdout, talk on stderr, exit code 0 when nothing was violated.

use std::process::ExitCode;

use clap::Parser;
use ikada_sim::{args, commands};

/// As in the product's binary: a seed allocates much and small.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::perform(args::Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
