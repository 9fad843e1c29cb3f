//! The command line as typed. Nothing here decides; commands turn it into calls.

mod audit;
mod auth;
mod bench;
mod bench_examples;
mod claim;
mod cluster;
mod demo;
mod dev;
mod doctor;
#[cfg(test)]
mod examples_test;
mod help;
mod job;
mod join_token;
mod lease;
mod namespace;
mod object;
mod program;
mod queue;
mod read;
#[cfg(test)]
mod reference_test;
mod request;
mod schedule;
mod server;
mod task;
mod verify;
mod worker;
mod worker_pool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};

pub(crate) use audit::{AuditCommand, AuditShowArgs, AuditVerifyArgs};
pub(crate) use auth::{
    AuthCommand, CertCommand, CertCreateArgs, ContextCommand, CredentialArgs, S3KeyCommand,
    TokenCommand, TokenCreateArgs, TokenOutArgs,
};
pub(crate) use bench::{
    BenchCommand, FailoverArgs, FloodKind, FloodsArgs, JobsBenchArgs, JobsPhase, ObjectsBenchArgs,
    ObjectsWorkload, QueueBenchArgs, QueuePhase, StartupArgs,
};
pub(crate) use claim::{ClaimArgs, CompleteArgs, FailArgs, HeldArgs};
pub(crate) use cluster::{
    BackupArgs, BackupPlace, ClusterCommand, ElectionsArgs, EventsArgs, GrowArgs, IntoDatabase,
    RecoverArgs, RestoreArgs, TransferArgs, WatchArgs,
};
pub(crate) use demo::DemoArgs;
pub(crate) use dev::DevArgs;
pub(crate) use doctor::{CompletionsArgs, DoctorArgs, ManArgs};
#[cfg(test)]
pub(crate) use examples_test::fault_of;
pub(crate) use help::command;
pub(crate) use job::{JobCommand, JobRunArgs, JobSubmitArgs};
pub(crate) use join_token::JoinTokenCommand;
pub(crate) use lease::{LeaseCommand, LeaseRunArgs, LeaseTakeArgs};
pub(crate) use namespace::NamespaceCommand;
pub(crate) use object::{
    ObjectCommand, ObjectDeleteArgs, ObjectGetArgs, ObjectListArgs, ObjectPutArgs,
};
pub(crate) use program::{ProgramCommand, ProgramPushArgs};
pub(crate) use queue::{PurgeArgs, QueueCommand};
pub(crate) use read::read;
pub(crate) use request::RequestCommand;
pub(crate) use schedule::{ScheduleCommand, ScheduleSetArgs};
pub(crate) use server::ServerArgs;
pub(crate) use task::{
    DropArgs, EnqueueArgs, ListArgs, LogsArgs, ManyArgs, TaskCommand, TaskSettings,
};
pub(crate) use verify::VerifyArgs;
pub(crate) use worker::WorkerArgs;
pub(crate) use worker_pool::WorkerPoolCommand;

use crate::contexts::Contexts;
use crate::failure::Failure;
use crate::render::OutputKind;

/// The version, and whether test-only defects are compiled in.
const VERSION: &str = match ikada_api::state::planted::COMPILED {
    true => concat!(env!("CARGO_PKG_VERSION"), " planted"),
    false => env!("CARGO_PKG_VERSION"),
};

/// A replicated job orchestrator: one binary, no other services.
#[derive(Debug, Parser)]
#[command(name = "ikada", version = VERSION, propagate_version = false, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ikada demo                                    a word count, a killed worker and leader, the right result
  ikada server --data ./data                    a cluster of one node on 127.0.0.1:7400
  ikada job run --map wordcount --input 'texts/*.txt' --reduce merge
  ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'
  ikada cluster status --output json

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 unavailable (try again), 4 refused.";

/// Where the help shows what all commands share.
const COMMON: &str = "Common options";

/// What all client commands share.
#[derive(Debug, Args)]
pub(crate) struct SharedArgs {
    /// A node of the cluster; repeat it, or separate with commas, to name several [default: http://127.0.0.1:7400].
    #[arg(
        long,
        global = true,
        help_heading = COMMON,
        env = "IKADA_URL",
        value_delimiter = ',',
        value_name = "URL"
    )]
    pub(crate) url: Vec<String>,
    /// The namespace; `default` when absent.
    #[arg(long, global = true, help_heading = COMMON, env = "IKADA_NAMESPACE", value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// How data is printed.
    #[arg(long, short, global = true, help_heading = COMMON, env = "IKADA_OUTPUT", value_enum, default_value_t = OutputKind::Table)]
    pub(crate) output: OutputKind,
    /// Show cells of tables whole, however wide the terminal is.
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) wide: bool,
    /// How long a command may take, in seconds.
    #[arg(long, global = true, help_heading = COMMON, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120), value_name = "SECONDS")]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// The node that is asked when none is named.
const URL_DEFAULT: &str = "http://127.0.0.1:7400";

impl SharedArgs {
    /// A client of the named nodes.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let (urls, options) = self.reach()?;
        Ok(Client::with(urls, options)?)
    }

    /// Whether nodes were named on the command line itself; what is in the environment was meant for other commands.
    pub(crate) fn is_url_typed(&self) -> bool {
        let set = std::env::var("IKADA_URL").unwrap_or_default();
        !self.url.is_empty() && self.url.join(",") != set
    }

    /// Which nodes, and how: flags and environment count, then the context, then the defaults.
    pub(crate) fn reach(&self) -> Result<(Vec<String>, ClientOptions), Failure> {
        let contexts = Contexts::load()?;
        let context = contexts.pick(self.credentials.context.as_deref())?;
        let context = context.cloned().unwrap_or_default();
        let urls = [self.url.clone(), context.url, vec![URL_DEFAULT.to_owned()]];
        let urls = urls.into_iter().find(|urls| !urls.is_empty()).unwrap_or_default();
        let token_file = self.credentials.token_file.clone().or(context.token_file);
        let ca_file = self.credentials.ca_file.clone().or(context.ca_file);
        let cert_file = self.credentials.cert_file.clone().or(context.cert_file);
        let key_file = self.credentials.key_file.clone().or(context.key_file);
        let authority = read_authority(ca_file.as_deref())?;
        let options = ClientOptions {
            namespace: self.namespace.clone().or(context.namespace),
            timeout: Duration::from_secs(self.timeout),
            token: read_token(token_file.as_deref())?,
            authority: add_certificate(authority, cert_file.as_deref(), key_file.as_deref())?,
            ..ClientOptions::default()
        };
        Ok((urls, options))
    }

    /// The files that hold what is shown to the cluster: a token, and the key of a certificate.
    pub(crate) fn secret_files(&self) -> Result<Vec<PathBuf>, Failure> {
        let contexts = Contexts::load()?;
        let context = contexts.pick(self.credentials.context.as_deref())?;
        let context = context.cloned().unwrap_or_default();
        // The token in the environment counts before that of any file.
        let in_file = std::env::var_os("IKADA_TOKEN").is_none();
        let token = self.credentials.token_file.clone().or(context.token_file);
        let key = self.credentials.key_file.clone().or(context.key_file);
        Ok(token.filter(|_| in_file).into_iter().chain(key).collect())
    }
}

/// The token of `IKADA_TOKEN`, else of the file.
fn read_token(file: Option<&Path>) -> Result<Option<AccessToken>, Failure> {
    let text = match (std::env::var("IKADA_TOKEN"), file) {
        (Ok(text), _) => text,
        (Err(_), Some(file)) => std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("token file {}: {error}", file.display())))?,
        (Err(_), None) => return Ok(None),
    };
    let token = AccessToken::parse(&text).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Some(token))
}

/// The authority in a file.
fn read_authority(file: Option<&Path>) -> Result<Option<TrustedAuthority>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("authority file {}: {error}", file.display()))
    };
    let pem = std::fs::read(file).map_err(|error| failed(&error))?;
    TrustedAuthority::from_pem(&pem).map(Some).map_err(|error| failed(&error))
}

/// The authority together with the client's certificate.
fn add_certificate(
    authority: Option<TrustedAuthority>,
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<TrustedAuthority>, Failure> {
    let (certificate, key) = match (certificate, key) {
        (None, None) => return Ok(authority),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => return Err(Failure::usage("--cert-file and --key-file go together")),
    };
    let Some(authority) = authority else {
        return Err(Failure::usage("--cert-file needs --ca-file: it is shown by TLS alone"));
    };
    let read = |file: &Path| {
        let failed = |error| Failure::usage(format!("{}: {error}", file.display()));
        std::fs::read(file).map_err(failed)
    };
    let shown = authority.with_certificate(&read(certificate)?, &read(key)?);
    let failed = |error| Failure::usage(format!("{}: {error}", certificate.display()));
    shown.map(Some).map_err(failed)
}

/// All commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node of a cluster.
    Server(Box<ServerArgs>),
    /// Run a worker: takes tasks and runs their programs.
    Worker(Box<WorkerArgs>),
    /// See it work: a word count survives a killed worker and leader.
    Demo(DemoArgs),
    /// Run a node and a worker in one process, for work on one machine.
    Dev(DevArgs),
    /// Measure: starts, killed leaders, queues, jobs, files, floods.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Work a test cluster of your own and judge what its clients saw.
    Verify(VerifyArgs),
    /// See the cluster, change its members, move leaders, back it up.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Run a program over many inputs: submit, follow, get the result.
    #[command(subcommand)]
    Job(JobCommand),
    /// Submit tasks, look at them, cancel and retry; claim by hand.
    #[command(subcommand)]
    Task(TaskCommand),
    /// Look at queues, change their settings, purge them.
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Look at namespaces, and bound what they may take.
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Let tasks be submitted at instants to come.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Make and revoke tokens, and see who you are.
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Make and revoke join tokens, by which nodes get certificates.
    #[command(subcommand)]
    JoinToken(JoinTokenCommand),
    /// Show and check the audit log of a node.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Remember clusters by a name.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Push, list, show and remove programs, which tasks name.
    #[command(subcommand)]
    Program(ProgramCommand),
    /// Upload, download, list and remove files that the cluster keeps.
    #[command(subcommand)]
    Object(ObjectCommand),
    /// Look at workers, let them leave, remove them.
    #[command(subcommand)]
    WorkerPool(WorkerPoolCommand),
    /// Locks and elections: run a command while holding a lease.
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Ask what became of a request, or rule it out.
    #[command(subcommand)]
    Request(RequestCommand),
    /// Check machine and cluster: disk, clocks, limits, ports, peers.
    Doctor(DoctorArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Write a manual page for every command.
    Man(ManArgs),
}

#[cfg(test)]
mod args_test;
