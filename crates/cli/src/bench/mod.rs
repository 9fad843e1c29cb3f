//! `ikada bench`: measures a cluster of its own on this machine, with the promises checked along the way.
//!
//! Uses the public API only. A figure is never given for a run that broke a promise without saying so: the exit code
//! is then 1.

mod beside;
mod database;
mod failover;
mod floods;
mod jobs;
mod load;
mod objects;
mod queue;
mod startup;
mod summary;
mod verify;

pub(crate) use beside::PeerKind;
pub(crate) use queue::Rival;

use beside::Compared;

use crate::args::{BenchCommand, SharedArgs};
use crate::failure::Failure;
use crate::local::{NODES_STOPPED, until_interrupted};
use crate::render::Screen;
use crate::typed_url::without_password;

/// Runs one of the benches.
pub(crate) async fn run(
    shared: &SharedArgs,
    command: &BenchCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let log = match command {
        BenchCommand::Queue(args) => args.log.as_ref(),
        BenchCommand::Failover(args) => args.log.as_ref(),
        _ => None,
    };
    log.map_or(Ok(()), |url| without_password("--log", url, ""))?;
    match command {
        BenchCommand::Queue(args) => drop(queue::is_existing(shared, args)?),
        _ if shared.is_url_typed() => {
            let message = "this bench starts a cluster of its own; leave --url out";
            return Err(Failure::usage(message));
        }
        _ => {}
    }
    match command {
        BenchCommand::Startup(args) => {
            let report = until_interrupted(NODES_STOPPED, startup::measure(args)).await?;
            screen.show(&report)?;
            report.verdict()
        }
        BenchCommand::Queue(args) if args.secure => {
            let report = until_interrupted(NODES_STOPPED, queue::compare(args)).await?;
            screen.show(&report)
        }
        BenchCommand::Queue(args) => {
            let report = until_interrupted(NODES_STOPPED, queue::measure(shared, args)).await?;
            screen.show(&report)
        }
        BenchCommand::Jobs(args) => {
            let report = until_interrupted(NODES_STOPPED, jobs::measure(args)).await?;
            screen.show(&report)
        }
        BenchCommand::Objects(args) => {
            let report = until_interrupted(NODES_STOPPED, objects::measure(args)).await?;
            screen.show(&report)?;
            report.verdict()
        }
        BenchCommand::Floods(args) => {
            let report = until_interrupted(NODES_STOPPED, floods::measure(args)).await?;
            screen.show(&report)?;
            report.verdict()
        }
        BenchCommand::Failover(args) => {
            let report = until_interrupted(NODES_STOPPED, failover::measure(args)).await?;
            if args.beside.is_empty() {
                screen.show(&report)?;
                return report.verdict();
            }
            let mut compared = Compared { ikada: report, beside: Vec::new() };
            for kind in &args.beside {
                compared
                    .beside
                    .push(until_interrupted(NODES_STOPPED, beside::measure(*kind, args)).await?);
            }
            screen.show(&compared)?;
            compared.ikada.verdict()
        }
    }
}
