//! `ikada task logs`: what a task's program has said, once or as it comes.

use std::io::Write;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::TaskStateName;

use crate::args::LogsArgs;
use crate::failure::Failure;

/// How often a log that grows is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn logs(client: &Client, args: &LogsArgs) -> Result<(), Failure> {
    let (mut shown, mut from) = (None, 0u64);
    loop {
        // Looked at first: what was said before the end is then there.
        let state = client.task(&args.id).await?.state;
        let finished =
            matches!(state, TaskStateName::Done | TaskStateName::Dead | TaskStateName::Cancelled);
        let newest = client.task_log(&args.id, args.attempt, 0).await?;
        if let Some(newest) = newest {
            if shown != Some(newest.attempt) {
                if shown.is_some() {
                    eprintln!("attempt {} begins", newest.attempt);
                }
                (shown, from) = (Some(newest.attempt), 0);
            }
            let fresh = newest.bytes.get(from as usize..).unwrap_or_default();
            print(fresh)?;
            from += fresh.len() as u64;
        }
        if finished || !args.follow {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    match shown {
        Some(_) => Ok(()),
        None => Err(Failure::failed(format!("task {} has said nothing that was kept", args.id))),
    }
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(bytes).and_then(|()| out.flush());
    printed.map_err(|error| Failure::failed(format!("standard output: {error}")))
}
