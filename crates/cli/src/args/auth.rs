//! `ikada auth` and `ikada context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about who may do what.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Make, list and revoke tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Make, list and revoke client certificates.
    #[command(subcommand)]
    Cert(CertCommand),
    /// Make, list and revoke keys for the S3 door.
    #[command(subcommand, name = "s3-key")]
    S3Key(S3KeyCommand),
    /// Show who you are to the cluster.
    #[command(after_help = "Examples:\n  IKADA_TOKEN_FILE=./admin-token ikada auth whoami")]
    Whoami,
}

/// Commands about tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token; its text is shown this once.
    Create(TokenOutArgs),
    /// List the tokens, without their secrets.
    #[command(after_help = "Examples:\n  ikada auth token list")]
    List,
    /// End a token; every node refuses it within 5 s.
    #[command(after_help = "Examples:\n  ikada auth token revoke 3f09c2a11b7e")]
    Revoke(TokenRevokeArgs),
}

const CERT_EXAMPLES: &str = "\
Examples:
  ikada auth cert create --data ./data --name ann --role viewer --out ./ann
  ikada --url https://10.0.0.1:7400 --ca-file ann/ca.pem --cert-file ann/ann.pem --key-file ann/ann.key auth whoami

Run it where the authority's key is, as an admin: the cluster records the certificate, and refuses those it has not recorded.";

/// Commands about client certificates.
#[derive(Debug, Subcommand)]
pub(crate) enum CertCommand {
    /// Make a certificate and its key, in place of a token.
    Create(CertCreateArgs),
    /// List the certificates.
    #[command(after_help = "Examples:\n  ikada auth cert list")]
    List,
    /// End all certificates of a name; every node refuses them within 5 s.
    #[command(after_help = "Examples:\n  ikada auth cert revoke ann")]
    Revoke(CertRevokeArgs),
}

/// Flags of `create`.
#[derive(Debug, Args)]
#[command(after_help = CERT_EXAMPLES)]
pub(crate) struct CertCreateArgs {
    #[command(flatten)]
    pub(crate) authority: super::join_token::AuthorityArgs,
    /// Whom it stands for: letters, digits, hyphens, at most 27; its principal is named `cert-` and this.
    #[arg(long)]
    pub(crate) name: String,
    /// admin, operator, submitter, worker or viewer.
    #[arg(long)]
    pub(crate) role: String,
    /// A namespace it is bound to; repeat it for several, leave it out for all.
    #[arg(long = "in", value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// How many days it lasts.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3660))]
    pub(crate) days: u64,
    /// Folder for NAME.pem, NAME.key and ca.pem.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Whose certificates.
#[derive(Debug, Args)]
pub(crate) struct CertRevokeArgs {
    /// The name that they were made for.
    pub(crate) name: String,
}

/// Commands about keys of the S3 door.
#[derive(Debug, Subcommand)]
pub(crate) enum S3KeyCommand {
    /// Make a key; its secret is shown this once.
    #[command(
        after_help = "Examples:\n  ikada auth s3-key create --name ci --role submitter --in builds"
    )]
    Create(TokenCreateArgs),
    /// List the keys, without their secrets.
    #[command(after_help = "Examples:\n  ikada auth s3-key list")]
    List,
    /// End a key; every node refuses it within 5 s.
    #[command(after_help = "Examples:\n  ikada auth s3-key revoke 3f09c2a11b7e")]
    Revoke(TokenRevokeArgs),
}

const CREATE_EXAMPLES: &str = "\
Examples:
  ikada auth token create --name ci --role submitter --in builds
  ikada auth token create --name pool-1 --role worker --days 90 --out worker.token
  ikada auth token create --name ann --role admin --days 0

Roles: admin (everything), operator (queues, schedules, leadership), submitter (tasks), worker (claims), viewer (looks).";

/// Flags of `create` for tokens.
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub(crate) struct TokenOutArgs {
    #[command(flatten)]
    pub(crate) token: TokenCreateArgs,
    /// Write the token into this new file, which only its owner can read, and show its id alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// What is wished of a token.
#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// Whom it stands for: letters, digits, hyphens. Claims of workers are bound to it.
    #[arg(long)]
    pub(crate) name: String,
    /// admin, operator, submitter, worker or viewer.
    #[arg(long)]
    pub(crate) role: String,
    /// A namespace it is bound to; repeat it for several, leave it out for all.
    #[arg(long = "in", value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// How many days it lasts; 0 is for ever.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=3660))]
    pub(crate) days: u64,
}

/// Which token.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// Its id, as listed.
    pub(crate) id: String,
}

/// Commands about contexts: clusters that are known by a name.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List the contexts; the current one is marked.
    #[command(after_help = "Examples:\n  ikada context list")]
    List,
    /// Remember a cluster under a name, or replace what is remembered.
    Set(ContextSetArgs),
    /// Make a context the current one.
    #[command(after_help = "Examples:\n  ikada context use prod")]
    Use(ContextName),
    /// Forget a context.
    #[command(after_help = "Examples:\n  ikada context remove prod")]
    Remove(ContextName),
}

/// Which context.
#[derive(Debug, Args)]
pub(crate) struct ContextName {
    /// Its name.
    pub(crate) name: String,
}

const CONTEXT_EXAMPLES: &str = "\
Examples:
  ikada context set prod --url https://10.0.0.1:7400 --token-file ~/.ikada-prod-token --ca-file ~/.ikada-prod-ca.pem
  ikada context use prod

The file is ~/.config/ikada/contexts.toml. It holds the names of files with tokens, never a token.";

/// Flags of `set`; those of all commands (--url, --token-file, --ca-file, --cert-file, --key-file, --namespace) are what is
/// remembered.
#[derive(Debug, Args)]
#[command(after_help = CONTEXT_EXAMPLES)]
pub(crate) struct ContextSetArgs {
    /// Its name.
    pub(crate) name: String,
}

/// How a client proves who it is, and whom it trusts.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CredentialArgs {
    /// File with the token; the token itself may stand in IKADA_TOKEN, never on the command line.
    #[arg(
        long,
        global = true,
        help_heading = super::COMMON,
        env = "IKADA_TOKEN_FILE",
        value_name = "FILE"
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// The authority of the cluster's certificates, for https: a copy of tls/ca.pem of any node.
    #[arg(
        long,
        global = true,
        help_heading = super::COMMON,
        env = "IKADA_CA_FILE",
        value_name = "FILE"
    )]
    pub(crate) ca_file: Option<PathBuf>,
    /// A client certificate to show in place of a token; see `ikada auth cert`.
    #[arg(
        long,
        global = true,
        help_heading = super::COMMON,
        env = "IKADA_CERT_FILE",
        value_name = "FILE"
    )]
    pub(crate) cert_file: Option<PathBuf>,
    /// The key of the client certificate.
    #[arg(
        long,
        global = true,
        help_heading = super::COMMON,
        env = "IKADA_KEY_FILE",
        value_name = "FILE"
    )]
    pub(crate) key_file: Option<PathBuf>,
    /// A context, if not the current one; see `ikada context`.
    #[arg(
        long,
        global = true,
        help_heading = super::COMMON,
        env = "IKADA_CONTEXT",
        value_name = "NAME"
    )]
    pub(crate) context: Option<String>,
}
