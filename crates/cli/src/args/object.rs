//! `ikada object`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about objects.
#[derive(Debug, Subcommand)]
pub(crate) enum ObjectCommand {
    /// Upload a file, or a folder with all that is in it.
    Put(ObjectPutArgs),
    /// Download an object, or a folder with all that is in it.
    Get(ObjectGetArgs),
    /// List buckets, or the objects of one.
    #[command(after_help = "Examples:\n  ikada object list\n  ikada object list reports/2026/")]
    List(ObjectListArgs),
    /// Remove an object with all its versions.
    #[command(
        after_help = "Examples:\n  ikada object delete reports/2026/may.csv\n  ikada object delete reports/2026/ --recursive --yes"
    )]
    Delete(ObjectDeleteArgs),
}

const PUT_EXAMPLES: &str = "\
Examples:
  ikada object put may.csv reports/2026/may.csv
  ikada object put may.csv reports/                     as reports/may.csv
  ikada object put disk.img images/disk.img             run it again to go on where it stopped
  ikada object put ./site web/v2 --recursive            run it again to go on where it stopped
  cat may.csv | ikada object put - reports/may.csv --if-absent";

/// An upload.
#[derive(Debug, Args)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct ObjectPutArgs {
    /// The file or folder; `-` reads standard input, by way of a temporary file.
    pub(crate) source: PathBuf,
    /// Where to: BUCKET/KEY; a key that ends with a slash gets the file's name.
    pub(crate) target: String,
    /// Upload a folder with all that is in it; what is there already with the same content is passed over.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// What the bytes are; guessed from the name when absent.
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Refuse if there is such an object.
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// Refuse unless the newest version has this digest.
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["if_absent", "recursive"])]
    pub(crate) if_match: Option<String>,
}

const GET_EXAMPLES: &str = "\
Examples:
  ikada object get reports/2026/may.csv                 into ./may.csv; run it again to go on where it stopped
  ikada object get reports/2026/may.csv - | wc -l
  ikada object get web/v2/ ./site --recursive";

/// A download.
#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct ObjectGetArgs {
    /// The object: BUCKET/KEY; with --recursive the folder.
    pub(crate) source: String,
    /// The file or folder; `-` is standard output. The last part of the key when absent.
    pub(crate) target: Option<PathBuf>,
    /// Download a folder with all that is in it.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// This version instead of the newest.
    #[arg(long, value_name = "NUMBER", conflicts_with = "recursive")]
    pub(crate) version: Option<u64>,
}

/// A look at objects.
#[derive(Debug, Args)]
pub(crate) struct ObjectListArgs {
    /// BUCKET, or BUCKET/PREFIX; all buckets when absent.
    pub(crate) place: Option<String>,
    /// Show every version.
    #[arg(long)]
    pub(crate) versions: bool,
}

/// A removal.
#[derive(Debug, Args)]
pub(crate) struct ObjectDeleteArgs {
    /// The object: BUCKET/KEY; with --recursive the folder: `web/v2` means all in `web/v2/`, and not `web/v20`.
    pub(crate) target: String,
    /// Remove only this version.
    #[arg(long, value_name = "NUMBER", conflicts_with = "recursive")]
    pub(crate) version: Option<u64>,
    /// Remove a folder with all that is in it; needs --yes.
    #[arg(long, short, requires = "yes")]
    pub(crate) recursive: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}
