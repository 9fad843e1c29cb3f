//! `ikada job run`: upload, submit, follow, print.

use ikada_api::Client;
use ikada_api::v1::{NewJob, NewReduce, NewStage, RangeBody, SettleBody};

use super::cut::{Cut, read_size};
use super::follow::{follow, judge};
use super::gather::gather;
use super::result::print;
use crate::args::JobRunArgs;
use crate::failure::Failure;
use crate::render::Screen;

pub(super) async fn run(
    client: &Client,
    args: JobRunArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (detach, to) = (args.detach, args.to.clone());
    let job = client.submit_job(&build(client, args).await?).await?;
    if detach {
        return screen.show(&job);
    }
    eprintln!("job {}: {} tasks", job.id, job.tasks_total);
    let ended = follow(client, &job.id).await?;
    judge(&ended)?;
    let took_ms = ended.finished_ms.unwrap_or(0).saturating_sub(ended.created_ms);
    eprintln!("job {} done after {}.{:03} s", job.id, took_ms / 1000, took_ms % 1000);
    print(client, &job.id, to.as_deref(), screen).await
}

async fn build(client: &Client, args: JobRunArgs) -> Result<NewJob, Failure> {
    let settle = Some(read_settle(&args.settle)?);
    let mut map = NewStage { program: args.map, settle, ..NewStage::default() };
    match &args.range {
        Some(range) => map.range = Some(read_range(range)?),
        None if args.input.is_empty() => {
            return Err(Failure::usage("give --input FILES or --range FROM..TO"));
        }
        None => {
            let cut = match (&args.split, args.lines) {
                (Some(size), _) => Cut::Bytes(read_size(size)?),
                (None, Some(0)) => return Err(Failure::usage("--lines must be at least 1")),
                (None, Some(lines)) => Cut::Lines(lines),
                (None, None) => Cut::Whole,
            };
            map.inputs = gather(client, &args.input, &args.bucket, cut).await?;
        }
    }
    let fan_in = args.fan_in;
    let reduce = args.reduce.map(|program| NewReduce { program, fan_in, ..NewReduce::default() });
    Ok(NewJob {
        id: args.id,
        name: args.name,
        queue: args.queue,
        settings: args.settings.into_iter().collect(),
        map: Some(map),
        reduce,
        priority: args.priority,
        max_attempts: args.max_attempts,
        ttl_ms: args.ttl_ms,
        timeout_ms: args.timeout_ms,
        labels: args.labels.into_iter().collect(),
        reuse: args.reuse,
        duplicate_after: args.duplicate_after,
        output_url: args.output_url,
        ..NewJob::default()
    })
}

fn read_settle(text: &str) -> Result<SettleBody, Failure> {
    match text {
        "all" => Ok(SettleBody::All),
        "any" => Ok(SettleBody::Any),
        number => number
            .parse()
            .map(SettleBody::Quorum)
            .map_err(|_| Failure::usage(format!("--settle {text}: give all, any or a number"))),
    }
}

/// `FROM..TO`, or `FROM..TO/STEP`.
fn read_range(text: &str) -> Result<RangeBody, Failure> {
    let (numbers, step) = match text.split_once('/') {
        Some((numbers, step)) => (numbers, Some(step)),
        None => (text, None),
    };
    let read = || {
        let (from, to) = numbers.split_once("..")?;
        let step = step.map(str::parse).transpose().ok()?;
        Some(RangeBody { from: from.parse().ok()?, to: to.parse().ok()?, step })
    };
    let rule = "give FROM..TO or FROM..TO/STEP, as in 0..1000/10";
    read().ok_or_else(|| Failure::usage(format!("--range {text}: {rule}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_settling_are_read() {
        let range = read_range("3..10/2").unwrap();
        assert_eq!((range.from, range.to, range.step), (3, 10, Some(2)));
        assert_eq!(read_range("0..5").unwrap().step, None);
        for bad in ["5", "a..b", "1..2/x", ""] {
            assert!(read_range(bad).is_err(), "{bad}");
        }
        assert_eq!(read_settle("3").unwrap(), SettleBody::Quorum(3));
        assert!(read_settle("most").is_err());
    }
}
