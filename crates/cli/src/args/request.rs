//! `ikada request`.

use clap::{Args, Subcommand};

/// Commands about requests.
#[derive(Debug, Subcommand)]
pub(crate) enum RequestCommand {
    /// Tell what became of a request: committed, not yet, or voided.
    #[command(
        after_help = "Examples:\n  ikada request show deploy-42\n  ikada request show deploy-42 --item 3"
    )]
    Show(RequestArgs),
    /// Rule a request out: what is not committed of it never will be.
    #[command(
        after_help = "Examples:\n  ikada request void deploy-42\n\nWhat was committed before stays; the answer says so. A late duplicate is refused (request_voided)."
    )]
    Void(RequestArgs),
}

/// A request.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The request id (its Idempotency-Key, or --key).
    pub(crate) id: String,
    /// Which item of the request, from 0.
    #[arg(long, default_value_t = 0)]
    pub(crate) item: u32,
}
