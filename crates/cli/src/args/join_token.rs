//! `ikada join-token`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about join tokens; they work on the data folder of the node that keeps the authority's key.
#[derive(Debug, Subcommand)]
pub(crate) enum JoinTokenCommand {
    /// Make a join token; its text is shown this once.
    #[command(
        after_help = "Examples:\n  ikada join-token create --data ./data --uses 2 --output quiet > join-token\n  ikada join-token create --data ./data --node 2 --output quiet > join-token"
    )]
    Create(JoinTokenCreateArgs),
    /// List the join tokens, without their secrets.
    #[command(after_help = "Examples:\n  ikada join-token list --data ./data")]
    List(AuthorityArgs),
    /// End a join token; nodes that joined by it stay.
    #[command(after_help = "Examples:\n  ikada join-token revoke --data ./data 1f09c2a11b7e")]
    Revoke(JoinTokenRevokeArgs),
}

/// Where the authority's key is.
#[derive(Debug, Args)]
pub(crate) struct AuthorityArgs {
    /// Data folder of the node that keeps the authority's key.
    #[arg(long, value_name = "DIR", default_value = "ikada-data")]
    pub(crate) data: PathBuf,
}

/// Flags of `create`.
#[derive(Debug, Args)]
pub(crate) struct JoinTokenCreateArgs {
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// How many nodes may join by it; none of them takes an id that another key has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) uses: u32,
    /// The one node that may join by it, once, also if its id was given to another key: for a node that lost its key.
    #[arg(long, value_name = "ID", conflicts_with = "uses")]
    pub(crate) node: Option<u64>,
    /// How many hours it lasts.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=8784))]
    pub(crate) hours: u64,
}

/// Which join token.
#[derive(Debug, Args)]
pub(crate) struct JoinTokenRevokeArgs {
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// Its id, as listed.
    pub(crate) id: String,
}
