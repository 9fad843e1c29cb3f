//! Empty commands: how many a second two workers start, and what each costs beyond starting a process.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ikada_api::v1::NewProgram;

use super::crew::Crew;
use super::report::{Aim, Row};
use super::{Bench, plain_job, rival};
use crate::failure::Failure;

/// The command that does nothing, where systems have it.
const COMMANDS: [&str; 2] = ["/bin/true", "/usr/bin/true"];
/// The two workers.
const WORKERS: [&str; 2] = ["one", "two"];
/// What a task may cost beyond its process, in ms.
const OVERHEAD_MS_MAX: f64 = 1.0;

impl Bench<'_> {
    pub(super) async fn commands(&mut self) -> Result<(), Failure> {
        let command = COMMANDS.into_iter().find(|path| Path::new(path).exists());
        let command = command.ok_or_else(|| Failure::failed("this machine has no /bin/true"))?;
        let (total, slots) = (self.args.commands, self.args.slots);
        let lanes = slots * WORKERS.len() as u32;
        let bare = start_bare(command, lanes, total).await?;
        let what = format!("{command} in a bare loop, {lanes} at a time");
        self.note(Row::rate(what, total, bare));
        let (name, kind) = ("bench-empty".to_owned(), "command".to_owned());
        let argv = vec![command.to_owned()];
        let program = NewProgram { name: name.clone(), kind, argv, ..NewProgram::default() };
        self.client.push_program(&program).await?;
        let other = self.hyperqueue(command).await?;
        for isolation in ["none", "best"] {
            let queue = format!("bench-{isolation}");
            let flags = ["--allow-command", command, "--isolation", isolation];
            let place = (queue.as_str(), slots);
            let (folder, urls) = (self.nodes.folder().to_owned(), self.nodes.urls());
            let crew = Crew::start(&folder, &urls, place, &WORKERS, &flags)?;
            // The first tasks wait for the workers and fetch the program.
            self.timed(&plain_job(&queue, &name, u64::from(lanes) * 4)).await?;
            let (_, seconds) = self.timed(&plain_job(&queue, &name, total)).await?;
            drop(crew);
            let what = format!("empty commands, two workers, {lanes} slots, isolation {isolation}");
            self.note(Row::rate(what.clone(), total, seconds));
            let overhead_ms = (seconds - bare) * 1e3 / total as f64;
            let what = format!("{what}: beyond the bare loop");
            let row = Row::new(what, overhead_ms, "ms per task");
            self.note(row.with(Aim::AtMost(OVERHEAD_MS_MAX)));
            if let Some(other) = other {
                let what = format!("isolation {isolation}, beside HyperQueue");
                let row = Row::new(what, total as f64 / seconds / other, "times its rate");
                self.note(row.with(Aim::AtLeast(1.0)));
            }
        }
        Ok(())
    }

    /// The same command through HyperQueue, in tasks a second, if that is wanted.
    async fn hyperqueue(&mut self, command: &str) -> Result<Option<f64>, Failure> {
        let Some(python) = self.args.hyperqueue.clone() else {
            return Ok(None);
        };
        let (tasks, slots) = (self.args.commands.max(rival::TASKS_MIN), self.args.slots);
        let seconds = rival::run(&python, command, tasks, slots).await?;
        let what = format!("{command} through HyperQueue, two workers of {slots} cores");
        self.note(Row::rate(what, tasks, seconds));
        Ok(Some(tasks as f64 / seconds))
    }
}

/// Starts a command again and again from so many threads; gives the seconds for all.
async fn start_bare(command: &'static str, lanes: u32, total: u64) -> Result<f64, Failure> {
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let lane = || {
        let next = next.clone();
        tokio::task::spawn_blocking(move || {
            while next.fetch_add(1, Ordering::Relaxed) < total {
                Command::new(command).status()?;
            }
            Ok::<(), std::io::Error>(())
        })
    };
    let running: Vec<_> = (0..lanes).map(|_| lane()).collect();
    for one in running {
        let ended = one.await.map_err(|error| Failure::failed(error.to_string()))?;
        ended.map_err(|error| Failure::failed(format!("{command}: {error}")))?;
    }
    Ok(began.elapsed().as_secs_f64())
}
