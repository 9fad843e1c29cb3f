//! `ikada namespace`.

use clap::{Args, Subcommand};
use ikada_api::v1::QuotaBody;

use super::WatchArgs;

/// Commands about namespaces.
#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceCommand {
    /// List the namespaces with their quotas and what they use.
    #[command(
        after_help = "Examples:\n  ikada namespace list\n  ikada namespace list -f                      again every second, until Ctrl-C\n  ikada namespace list --output json"
    )]
    List(WatchArgs),
    /// Show a namespace's quota and what it uses; your own when no name is given.
    #[command(
        after_help = "Examples:\n  ikada namespace show team-a\n  ikada namespace show --namespace team-a      with a token that is bound to team-a"
    )]
    Show(NamespaceShowArgs),
    /// Change a namespace's quota (admins).
    Set(NamespaceSetArgs),
}

/// Flags of `show`.
#[derive(Debug, Args)]
pub(crate) struct NamespaceShowArgs {
    /// The namespace.
    pub(crate) name: Option<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  ikada namespace set team-a --max-pending 100000 --max-bytes 1073741824 --rate 500
  ikada namespace set team-a --max-object-bytes 10737418240
  ikada namespace set team-a --rate 0                          no bound any more

Each shard admits its share of --max-pending and --max-bytes; what waits already stays.";

/// Flags of `set`; 0 lifts a bound, an absent one stays as it is.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct NamespaceSetArgs {
    /// The namespace.
    pub(crate) name: String,
    /// Most unfinished tasks.
    #[arg(long, value_name = "TASKS")]
    max_pending: Option<u64>,
    /// Most bytes of unfinished tasks.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Most bytes of objects, all their versions counted.
    #[arg(long, value_name = "BYTES")]
    max_object_bytes: Option<u64>,
    /// Most tasks submitted in a second.
    #[arg(long, value_name = "TASKS")]
    rate: Option<u32>,
}

impl NamespaceSetArgs {
    /// The quota to send; none if nothing would change.
    pub(crate) fn quota(&self) -> Option<QuotaBody> {
        let quota = QuotaBody {
            pending_max: self.max_pending,
            bytes_max: self.max_bytes,
            object_bytes_max: self.max_object_bytes,
            rate_max: self.rate,
        };
        (quota != QuotaBody::default()).then_some(quota)
    }
}
