//! The helper process alone: what `ikada` does first thing. Tests of the sandbox start it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ikada_worker::sandbox::helper().unwrap_or_else(|| {
        eprintln!("this is a helper of the worker's sandbox; nobody starts it by hand");
        ExitCode::from(2)
    })
}
