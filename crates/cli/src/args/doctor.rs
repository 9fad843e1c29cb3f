//! `ikada doctor`, `ikada completions`, `ikada man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// What to look at.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ikada doctor                                    this machine, and the cluster at 127.0.0.1:7400 if there is one
  ikada doctor --data /var/lib/ikada              the disk that the node will use
  ikada doctor --peer 10.0.0.2:7401 --peer 10.0.0.3:7401   whether the other nodes can be reached, before the first start
  ikada doctor --url http://10.0.0.1:7400 -o json

Exit code 1 if something is wrong; what is only doubtful does not count.")]
pub(crate) struct DoctorArgs {
    /// Data folder of the node, or where it will be: its disk is measured.
    #[arg(long, value_name = "DIR", default_value = "ikada-data")]
    pub(crate) data: PathBuf,
    /// Addresses that a node shall listen on: they must be free, or a node's.
    #[arg(long, value_name = "ADDR", default_values = ["127.0.0.1:7400", "127.0.0.1:7401"])]
    pub(crate) listen: Vec<String>,
    /// Peer addresses of the other nodes: their names must be known, and something must answer there; may be given several times.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) peer: Vec<String>,
}

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ikada completions bash > ~/.local/share/bash-completion/completions/ikada
  ikada completions zsh > \"${fpath[1]}/_ikada\"
  ikada completions fish > ~/.config/fish/completions/ikada.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Where to put the pages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ikada man ~/.local/share/man/man1
  man ikada-task-enqueue")]
pub(crate) struct ManArgs {
    /// Folder for the pages; made if it is missing.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
