//! Programs that every worker has: `wordcount`, `grep` and `merge`. They show how jobs work with nothing pushed first.
//!
//! Promises: inputs are read as they come, and what a program keeps of them (words, matches, lines) has a bound: beyond
//! `KEPT_BYTES_MAX` it gives up and says so; the same inputs give the same bytes. All take the setting `pause-ms`, which
//! waits so long before the work, to try things out.
//! Leaves out: whose result counts (the cluster's fence), and slots (the agent's).

mod ahead;
mod grep;
mod merge;
mod read;
mod turns;
mod wordcount;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ikada_api::client::ObjectSource;
use ikada_api::convert::BUILTIN_PROGRAMS;
use ikada_api::v1::{OutputItem, WorkInfo};
use ikada_api::{Client, abreast};

pub use wordcount::Counts;

use crate::exec::{Carried, Destination, Objects, Urls, abreast_at, store};
use crate::run::{Claimed, TaskError, TaskResult, Worker};

/// Longest `pause-ms`.
const PAUSE_MS_MAX: u64 = 60_000;
/// Most bytes that one attempt keeps in memory: it runs in the worker's own process, which has other tasks, too.
const KEPT_BYTES_MAX: usize = 256 << 20;
/// Most partitions of what is counted.
const PARTITIONS_MAX: u64 = 1_024;

/// What a program came to.
struct Brought {
    /// Small result, as JSON.
    result: Vec<u8>,
    /// Files, uploaded already; a completion that counts publishes them.
    outputs: Vec<OutputItem>,
}

/// Why a program gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum BuiltinError {
    /// Another try may help.
    #[error("{0}")]
    Failed(String),
    /// No other try can help.
    #[error("{0}")]
    Hopeless(String),
}

/// Bytes of a file that a program makes, with its name.
type Made = Vec<(String, Vec<u8>)>;

/// Takes text as it comes, and makes files of it in the end.
trait Program: Send {
    /// An input begins.
    fn begin(&mut self, name: &str);
    /// Bytes of the input that began last.
    fn feed(&mut self, bytes: &[u8]);
    /// The input is over.
    fn end(&mut self);
    /// Bytes that it keeps in memory, about.
    fn kept(&self) -> usize;
    /// Whether it must see all inputs once more from the beginning, for what it found in them.
    fn wants_again(&mut self) -> bool {
        false
    }
    /// Files and small result.
    fn finish(self: Box<Self>) -> (Made, serde_json::Value);
}

/// Gives a worker all programs that are built in; their inputs may also come from some addresses, and their outputs go to some.
pub fn equip(worker: Worker, client: &Client, urls: &Urls) -> Worker {
    let objects = Objects::new(client.clone(), urls.near.as_deref());
    let (client, urls, turns) = (client.clone(), urls.clone(), turns::Turns::new());
    let sources = Arc::new(Sources { client, objects, urls, turns });
    BUILTIN_PROGRAMS.into_iter().fold(worker, |worker, name| {
        let sources = sources.clone();
        worker.function(name, move |task: Claimed| {
            let sources = sources.clone();
            async move { attempt(&sources, task).await }
        })
    })
}

/// Where inputs come from.
struct Sources {
    client: Client,
    objects: Objects,
    urls: Urls,
    turns: turns::Turns,
}

async fn attempt(sources: &Arc<Sources>, task: Claimed) -> Result<TaskResult, TaskError> {
    let work = task.work.ok_or_else(|| TaskError::give_up("the task names no program"))?;
    let missing = || TaskError::new(format!("program {} is not built in", work.program.name));
    let destination = Destination::of(&work, &task.id, task.fence);
    match run(sources, &work, destination).await.ok_or_else(missing)? {
        Ok(brought) => Ok(TaskResult::from(brought.result).with_outputs(brought.outputs)),
        Err(BuiltinError::Failed(why)) => Err(TaskError::new(why)),
        Err(BuiltinError::Hopeless(why)) => Err(TaskError::give_up(why)),
    }
}

/// Runs a program by name; none if it is not built in.
async fn run(
    sources: &Arc<Sources>,
    work: &WorkInfo,
    destination: Option<Destination>,
) -> Option<Result<Brought, BuiltinError>> {
    let program: Result<Box<dyn Program>, BuiltinError> = match work.program.name.as_str() {
        "wordcount" => wordcount::WordCount::new(&work.settings).map(|it| Box::new(it) as _),
        "grep" => grep::Grep::new(&work.settings).map(|it| Box::new(it) as _),
        "merge" => merge::Merge::new(&work.settings).map(|it| Box::new(it) as _),
        _ => return None,
    };
    Some(match program {
        Ok(program) => carry_out(sources, work, destination, program).await,
        Err(error) => Err(error),
    })
}

async fn carry_out(
    sources: &Arc<Sources>,
    work: &WorkInfo,
    destination: Option<Destination>,
    program: Box<dyn Program>,
) -> Result<Brought, BuiltinError> {
    let pause_ms = number(&work.settings, "pause-ms", PAUSE_MS_MAX)?.unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    let (files, result) = read::read_all(sources, &work.inputs, program).await?;
    let destination = destination.as_ref();
    let bring = async |(name, bytes): (String, Vec<u8>)| -> Result<_, BuiltinError> {
        let (client, bytes) = (&sources.client, Bytes::from(bytes));
        let brought = match destination {
            Some(destination) => {
                let made = Carried::Bytes(Some(bytes));
                destination.bring(client, &sources.urls.outputs, &name, made).await
            }
            None => store(client, &ObjectSource::Bytes(bytes), &name).await,
        };
        brought.map_err(|error: TaskError| BuiltinError::Failed(error.message().to_owned()))
    };
    let outputs = abreast(abreast_at(destination), files.into_iter().map(bring)).await?;
    Ok(Brought { result: result.to_string().into_bytes(), outputs })
}

/// A setting that is a number.
fn number(
    settings: &BTreeMap<String, String>,
    name: &str,
    value_max: u64,
) -> Result<Option<u64>, BuiltinError> {
    let Some(text) = settings.get(name) else {
        return Ok(None);
    };
    match text.parse::<u64>() {
        Ok(value) if value <= value_max => Ok(Some(value)),
        _ => Err(BuiltinError::Hopeless(format!(
            "setting {name} is {text:?}; it must be a number from 0 to {value_max}"
        ))),
    }
}

/// A setting that is one of some words; the first when absent.
fn word<'a>(
    settings: &BTreeMap<String, String>,
    name: &str,
    words: &[&'a str],
) -> Result<&'a str, BuiltinError> {
    let Some(text) = settings.get(name) else {
        return Ok(words[0]);
    };
    words.iter().find(|word| *word == text).copied().ok_or_else(|| {
        BuiltinError::Hopeless(format!(
            "setting {name} is {text:?}; it must be {}",
            words.join(" or ")
        ))
    })
}
