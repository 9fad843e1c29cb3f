//! `ikada program`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about programs.
#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Keep a program under a name.
    Push(ProgramPushArgs),
    /// List all programs.
    #[command(after_help = "Examples:\n  ikada program list")]
    List,
    /// Show a program: how it is run, and what it consists of.
    #[command(after_help = "Examples:\n  ikada program show resize")]
    Show(ProgramNameArg),
    /// Remove a program's name; tasks that were submitted for it keep it.
    #[command(after_help = "Examples:\n  ikada program delete resize")]
    Delete(ProgramNameArg),
}

/// A program.
#[derive(Debug, Args)]
pub(crate) struct ProgramNameArg {
    /// The program.
    pub(crate) name: String,
}

const PUSH_EXAMPLES: &str = "\
Examples:
  ikada program push wordcount.wasm                       a module for WASI preview 1, named wordcount
  ikada program push count.py --name count -- python3 {file}
  ikada program push --name resize -- convert -resize 50% -
  ikada program push --handler thumbnails                 a function of your own workers
  ikada task enqueue --program count --set top=5 --input a.txt=texts/a.txt

Everything after -- is the command: program and arguments, never a shell line. {file} stands for the file.";

/// Flags of `push`.
#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES)]
pub(crate) struct ProgramPushArgs {
    /// The module, or a file that the command needs.
    #[arg(required_unless_present_any = ["command", "handler"])]
    pub(crate) file: Option<PathBuf>,
    /// Its name; that of the file without its ending when absent.
    #[arg(long, required_unless_present_any = ["file", "handler"])]
    pub(crate) name: Option<String>,
    /// Not a file: a function of this name in the code of the workers that run it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "name", "entry", "command"])]
    pub(crate) handler: Option<String>,
    /// The export that begins a module; _start when absent.
    #[arg(long, conflicts_with = "command")]
    pub(crate) entry: Option<String>,
    /// The command: program and arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
