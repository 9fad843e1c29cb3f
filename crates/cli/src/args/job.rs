//! `ikada job`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WatchArgs;
use super::task::read_label;

/// Commands about jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Upload inputs, submit a job, follow it and print its result.
    Run(Box<JobRunArgs>),
    /// Submit a job that a file describes, or the flags of `run`, and print its id.
    Submit(JobSubmitArgs),
    /// List jobs, the newest first.
    #[command(
        after_help = "Examples:\n  ikada job list\n  ikada job list -f                        again every second, until Ctrl-C\n  ikada job list --output quiet"
    )]
    List(WatchArgs),
    /// Show where a job stands, stage by stage.
    #[command(after_help = "Examples:\n  ikada job show last")]
    Show(JobName),
    /// Show a job's tasks.
    #[command(after_help = "Examples:\n  ikada job tasks last\n  ikada job tasks last --stage map")]
    Tasks(JobTasksArgs),
    /// Follow a job until it has ended. Exit code 0 if it is done, 1 if it failed or was cancelled.
    #[command(after_help = "Examples:\n  ikada job wait last")]
    Wait(JobName),
    /// Print what a job came to: the bytes of its output, or a list if there are several.
    #[command(
        after_help = "Examples:\n  ikada job result last | head\n  ikada job result last --to results/"
    )]
    Result(JobResultArgs),
    /// Print what a job's programs have said, each line with its task.
    #[command(
        after_help = "Examples:\n  ikada job logs last\n  ikada job logs last -f                   goes on until the job has ended\n\nLogs are kept as long as their tasks. They reach the cluster a second or more after they were written."
    )]
    Logs(JobLogsArgs),
    /// Cancel a job with all its tasks.
    #[command(
        after_help = "Examples:\n  ikada job cancel last                     asks first, if this is a terminal\n  ikada job cancel last --yes"
    )]
    Cancel(JobCancelArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  ikada job run --map wordcount --input 'texts/*.txt' --reduce merge
  ikada job run --map grep --set pattern=peace --input war-and-peace.txt --split 4MiB --reduce merge
  ikada job run --map wordcount --input object:texts/2026/ --reduce merge
  ikada job run --map wordcount --input 's3://texts/2026/*.txt' --split 64MiB --reduce merge
  ikada job run --map resize --input 's3://photos/raw/*.jpg' --output-url s3://photos/small/
  ikada job run --map search --range 0..1000000/10000 --settle any

Exit codes: 0 done, 1 the job failed or was cancelled, 2 wrong usage, 3 unavailable (try again), 4 refused.";

/// What a job runs and on what.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct JobRunArgs {
    /// The program that reads the inputs, one task each.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) map: String,
    /// The program that puts the outputs together.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) reduce: Option<String>,
    /// A file or a pattern of files, uploaded first; `object:BUCKET/BEGINNING` for what is stored; or an address that workers open, as s3://BUCKET/KEY, or a pattern of addresses, as 's3://BUCKET/texts/*.txt' (gs://, az://, file:///). May be repeated.
    #[arg(long, short, value_name = "FILES")]
    pub(crate) input: Vec<String>,
    /// Numbers instead of files: FROM..TO, or FROM..TO/STEP with so many numbers per task.
    #[arg(long, value_name = "RANGE", conflicts_with = "input")]
    pub(crate) range: Option<String>,
    /// Cut files at line ends into parts of about this size, as 4MiB; one task each.
    #[arg(long, value_name = "SIZE", conflicts_with = "lines")]
    pub(crate) split: Option<String>,
    /// Cut files into parts of so many lines; one task each.
    #[arg(long, value_name = "COUNT")]
    pub(crate) lines: Option<u64>,
    /// A setting for the programs; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = read_setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// When the map is settled: all, any, or a number of tasks.
    #[arg(long, value_name = "WHEN", default_value = "all")]
    pub(crate) settle: String,
    /// Most tasks whose outputs one task of the reduce reads; 64 when absent.
    #[arg(long, value_name = "COUNT")]
    pub(crate) fan_in: Option<u32>,
    /// A name for people.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The job's id; made up when absent.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The queue of its tasks; `default` when absent.
    #[arg(long, short)]
    pub(crate) queue: Option<String>,
    /// 0 to 9, 9 first.
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Most attempts of a task.
    #[arg(long)]
    pub(crate) max_attempts: Option<u16>,
    /// How long a claim lives without renewal.
    #[arg(long)]
    pub(crate) ttl_ms: Option<u32>,
    /// Longest time for an attempt.
    #[arg(long)]
    pub(crate) timeout_ms: Option<u32>,
    /// What the workers must have; may be repeated.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = read_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Use results of the same program, settings and inputs instead of running tasks again.
    #[arg(long)]
    pub(crate) reuse: bool,
    /// Begin a task a second time once it runs so many times as long as the others did; whichever is done first counts.
    #[arg(long, value_name = "FACTOR")]
    pub(crate) duplicate_after: Option<u16>,
    /// An address below which workers bring the outputs of the last stages, as s3://BUCKET/FOLDER/ (gs://, az://, file:///), instead of objects of the cluster.
    #[arg(long, value_name = "URL", conflicts_with_all = ["reuse", "to"])]
    pub(crate) output_url: Option<String>,
    /// The bucket that files are uploaded to.
    #[arg(long, default_value = "inputs")]
    pub(crate) bucket: String,
    /// Print the job's id once it is submitted, and do not wait.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Put the result into this file or folder, or s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/BLOB, instead of standard output.
    #[arg(long, value_name = "PATH")]
    pub(crate) to: Option<PathBuf>,
}

const SUBMIT_EXAMPLES: &str = "\
Examples:
  ikada job submit job.toml
  ikada job submit job.toml --set pattern=war --wait

The file has the fields of POST /v1/jobs. A stage may name local files, which are uploaded first:
  name = \"count\"
  [map]
  program = \"wordcount\"
  files = [\"texts/*.txt\"]
  [reduce]
  program = \"merge\"";

/// A job in a file.
#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct JobSubmitArgs {
    /// The file.
    pub(crate) file: PathBuf,
    /// A setting for the programs, over those of the file; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = read_setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// The bucket that files are uploaded to.
    #[arg(long, default_value = "inputs")]
    pub(crate) bucket: String,
    /// Follow the job until it has ended.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// A job.
#[derive(Debug, Args)]
pub(crate) struct JobName {
    /// The job's id; `last` is the newest.
    pub(crate) id: String,
}

/// Flags of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct JobCancelArgs {
    #[command(flatten)]
    pub(crate) job: JobName,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// A job's logs.
#[derive(Debug, Args)]
pub(crate) struct JobLogsArgs {
    #[command(flatten)]
    pub(crate) job: JobName,
    /// Go on until the job has ended.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// A job's tasks.
#[derive(Debug, Args)]
pub(crate) struct JobTasksArgs {
    #[command(flatten)]
    pub(crate) job: JobName,
    /// Only this stage.
    #[arg(long)]
    pub(crate) stage: Option<String>,
}

/// A job's result.
#[derive(Debug, Args)]
pub(crate) struct JobResultArgs {
    #[command(flatten)]
    pub(crate) job: JobName,
    /// Put it into this file or folder, or s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/BLOB, instead of standard output.
    #[arg(long, value_name = "PATH")]
    pub(crate) to: Option<PathBuf>,
}

fn read_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}
