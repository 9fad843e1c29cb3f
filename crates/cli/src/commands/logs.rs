//! `ikada task logs` and `ikada job logs`: what programs have said, once or as it comes.
//!
//! Promise of following: when the node goes away, another one is asked; nothing is printed twice, and what cannot be had is
//! said. It ends with the log, or with whoever reads it.

use ikada_api::client::{Error, LogStream, LogWord};

use super::events::all_nodes;
use crate::args::{LogsArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::{Terminal, put, say, while_heard};

/// What the log of one task is printed like.
pub(super) async fn task_logs(shared: &SharedArgs, args: &LogsArgs) -> Result<(), Failure> {
    while_heard(tell_task(shared, args)).await
}

async fn tell_task(shared: &SharedArgs, args: &LogsArgs) -> Result<(), Failure> {
    if !args.follow {
        let newest = shared.client()?.task_log(&args.id, args.attempt, 0).await?;
        return match newest {
            Some(newest) => print(&mut Terminal::of_stdout(), &newest.bytes),
            None => Err(silent("task", &args.id)),
        };
    }
    let stream = all_nodes(shared).await?.follow_task_logs(&args.id, args.attempt);
    let (mut shown, mut terminal) = (None, Terminal::of_stdout());
    let said = tell(stream, |_, attempt, bytes| {
        if shown.is_some_and(|shown| shown != attempt) {
            say(&format!("attempt {attempt} begins"));
        }
        shown = Some(attempt);
        print(&mut terminal, bytes)
    });
    match said.await? {
        true => Ok(()),
        false => Err(silent("task", &args.id)),
    }
}

/// Every line of every task of a job, with the task's name.
pub(super) async fn job_logs(shared: &SharedArgs, id: &str, follow: bool) -> Result<(), Failure> {
    while_heard(tell_job(shared, id, follow)).await
}

async fn tell_job(shared: &SharedArgs, id: &str, follow: bool) -> Result<(), Failure> {
    let client = match follow {
        true => all_nodes(shared).await?,
        false => shared.client()?,
    };
    let mut terminal = Terminal::of_stdout();
    let said = tell(client.follow_job_logs(id, follow), |task, attempt, bytes| {
        let task = task.strip_prefix(id).and_then(|task| task.strip_prefix(':')).unwrap_or(task);
        let name = match attempt {
            1 => task.to_owned(),
            _ => format!("{task}/{attempt}"),
        };
        let mut text = Vec::with_capacity(bytes.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            text.extend_from_slice(format!("{name}: ").as_bytes());
            text.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
            text.push(b'\n');
        }
        print(&mut terminal, &text)
    });
    match said.await? {
        true => Ok(()),
        false => Err(silent("job", id)),
    }
}

/// Hands over all that a stream tells until its end; says whether there was anything.
async fn tell(
    mut stream: LogStream,
    mut show: impl FnMut(&str, u16, &[u8]) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut said = false;
    loop {
        match stream.next().await {
            Ok(LogWord::Said { task, attempt, bytes }) => {
                said = true;
                show(&task, attempt, &bytes)?;
            }
            Ok(LogWord::Gap(gap)) => {
                let whose = gap.task.map_or_else(String::new, |task| format!(" of {task}"));
                say(&format!("a part of the log{whose} is missing: {}", gap.reason));
            }
            Ok(LogWord::End(_)) => return Ok(said),
            Err(Error::Unavailable { detail, .. }) if said => {
                say(&format!("no node tells the log, trying again: {detail}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn silent(what: &str, id: &str) -> Failure {
    Failure::failed(format!("{what} {id} has said nothing that was kept"))
}

fn print(terminal: &mut Terminal, bytes: &[u8]) -> Result<(), Failure> {
    put(&terminal.show(bytes))
}
