//! `ikada audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about the audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
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
