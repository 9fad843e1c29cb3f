//! `ikada audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about the audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show who did what, and who was not let in.
    Show(AuditShowArgs),
    /// Check that no line of an audit log was changed, removed or added.
    #[command(after_help = "Examples:\n  ikada audit verify --data ./data")]
    Verify(AuditVerifyArgs),
}

/// Which log.
#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// Data folder of the node.
    #[arg(long, value_name = "DIR", default_value = "ikada-data")]
    pub(crate) data: PathBuf,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  ikada audit show --data ./data --denied
  ikada audit show --data ./data --principal ann --action RevokeToken --last 1000
  ikada audit show --data ./data --object mail --output json

Each node has the lines of the calls that it answered. Status 499: the caller hung up, and it may have been done or not.";

/// Which lines.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct AuditShowArgs {
    #[command(flatten)]
    pub(crate) log: AuditVerifyArgs,
    /// Only those of this caller.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only those of this operation, as the lines name it.
    #[arg(long, value_name = "NAME")]
    pub(crate) action: Option<String>,
    /// Only those whose object holds this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) object: Option<String>,
    /// Only those of callers that were not let in.
    #[arg(long)]
    pub(crate) denied: bool,
    /// How many at most: the newest, oldest first.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) last: u32,
}
