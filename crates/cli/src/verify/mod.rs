//! `ikada verify`: a workload against a test cluster of the user's own, and a strict look at what came of it.
//!
//! Submitters, workers (some die, some come back late) and readers note for every call when it began, when it was
//! answered and how: done, refused, or unknown. Whatever befalls the cluster meanwhile, the history must be explainable:
//! nothing acknowledged is missing or done twice, fences only rise, every answer fits one order of events per task, and
//! copies are equal. Faults are somebody else's business (`cargo xtask chaos`, or pulling plugs).
//!
//! Leaves out: anything that a client could not see.

mod check;
mod history;
mod linearize;
mod report;
mod workload;

use std::time::Duration;

use ikada_api::Client;

use crate::args::{SharedArgs, VerifyArgs};
use crate::failure::Failure;
use crate::render::{Screen, bar, spinner};

/// The workload must come to rest within this time after its end.
const DRAIN: Duration = Duration::from_secs(120);

pub(crate) async fn run(
    shared: &SharedArgs,
    args: &VerifyArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (urls, options) = shared.reach()?;
    let client = Client::with(&urls, options.clone())?;
    let run = ikada_api::client::unique_key();
    let queue = format!("verify-{run}");
    workload::prepare(&client, &queue).await?;
    eprintln!("writing to queue {queue} for {} s", args.seconds);
    let mut clients = Vec::new();
    for first in 0..urls.len() {
        let mut order = urls.clone();
        order.rotate_left(first);
        clients.push(Client::with(&order, options.clone())?);
    }
    let load = workload::Load::start(&clients, &queue, args.rate, args.calm_workers);
    let bar = bar(args.seconds, "seconds");
    for _ in 0..args.seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let turning = spinner("waiting until all tasks are settled, then looking at them");
    let (history, drained) = load.finish(&client, DRAIN).await?;
    let end = check::look(&client, &queue, &urls).await?;
    turning.finish_and_clear();
    let report = check::judge(&history, &end, drained);
    screen.show(&report)?;
    match report.violations.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(format!("{} violations", report.violations.len()))),
    }
}
