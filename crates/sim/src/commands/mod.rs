//! The commands, one file each.

mod blobs;
mod campaign;
mod elections;
mod marks;
mod meta;
mod planted;
mod replay;
mod run;
mod scenarios;

use anyhow::Result;

use crate::args::{Args, Command};
pub use campaign::{Defect, Finished, draw_plan, run_plan};

/// Does what the arguments ask; false when something was violated or missed.
pub fn perform(args: Args) -> Result<bool> {
    match args.command {
        Command::Run(run) => run::perform(&run),
        Command::Meta(meta) => meta::perform(&meta),
        Command::Replay(replay) => replay::perform(&replay),
        Command::Planted(planted) => planted::perform(&planted),
        Command::Marks(run) => marks::perform(&run),
        Command::Elections(elections) => elections::perform(&elections),
        Command::Blobs(blobs) => blobs::perform(&blobs),
        Command::Scenarios(scenarios) => scenarios::perform(&scenarios),
    }
}
