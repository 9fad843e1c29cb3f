//! `ikada task enqueue|show|list|cancel|explain|retry|drop`; the rest is in `claim.rs` and `enqueue_file.rs`.

use std::collections::BTreeMap;
use std::io::Read;

use ikada_api::Client;
use ikada_api::client::{Consistency, Error, TaskQuery, unique_key};
use ikada_api::v1::{BackoffBody, Body, ItemOutcome, NewTask, TaskPage};
use serde_json::value::RawValue;

use super::confirm::confirm;
use super::watch::watch;
use crate::args::{
    DropArgs, EnqueueArgs, ListArgs, LogsArgs, ManyArgs, SharedArgs, TaskCommand, TaskSettings,
};
use crate::failure::Failure;
use crate::render::{OutputKind, Screen, plain, spinner};

/// Tasks asked for at once when listing.
const PAGE: u32 = 1_000;
/// The selector of the newest task.
const LAST: &str = "last";
/// Tasks have no order by time, so that all must be looked at to find the newest.
const LAST_AMONG_MAX: usize = 1_000_000;

pub(crate) async fn task(
    shared: &SharedArgs,
    command: TaskCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        TaskCommand::Enqueue(args) if args.file.is_some() => {
            super::enqueue_file::enqueue_file(&client, &args, screen).await
        }
        TaskCommand::Enqueue(args) => enqueue(&client, *args, screen).await,
        TaskCommand::Claim(args) => super::claim::claim(&client, args, screen).await,
        TaskCommand::Complete(args) => super::claim::complete(&client, *args, screen).await,
        TaskCommand::Fail(args) => super::claim::fail(&client, args, screen).await,
        TaskCommand::Renew(args) => super::claim::renew(&client, args, screen).await,
        TaskCommand::Show(args) => {
            let id = select(&client, args.id).await?;
            let consistency = freshness(args.stale);
            watch(&args.watch, screen, || client.task_at(&id, &consistency)).await
        }
        TaskCommand::List(args) => list(&client, args, screen).await,
        TaskCommand::Cancel { id } => {
            let outcome = client.cancel(&id).await?;
            screen.show(&outcome)
        }
        TaskCommand::Explain { id } => {
            let id = select(&client, id).await?;
            screen.show(&client.explain(&id).await?)
        }
        TaskCommand::Logs(args) => {
            let args = LogsArgs { id: select(&client, args.id).await?, ..args };
            super::logs::task_logs(shared, &args).await
        }
        TaskCommand::Retry(args) => retry(&client, args, screen).await,
        TaskCommand::Drop(args) => drop_tasks(&client, args, screen).await,
    }
}

/// The task that a selector means; only for commands that look. A task of that very name goes first.
async fn select(client: &Client, selector: String) -> Result<String, Failure> {
    if selector != LAST {
        return Ok(selector);
    }
    match client.task(LAST).await {
        Err(Error::Refused(problem)) if problem.code == "task_not_found" => {}
        Err(error) => return Err(error.into()),
        Ok(task) => return Ok(task.id),
    }
    let turning = spinner("looking for the newest task".to_owned());
    let newest = newest(client).await;
    turning.finish_and_clear();
    newest?.ok_or_else(|| Failure::failed("there are no tasks"))
}

async fn newest(client: &Client) -> Result<Option<String>, Failure> {
    let mut query = TaskQuery { brief: true, limit: Some(PAGE), ..TaskQuery::default() };
    let (mut newest, mut seen): (Option<(u64, String)>, usize) = (None, 0);
    loop {
        let page = client.tasks(&query).await?;
        seen += page.tasks.len();
        let tasks = page.tasks.into_iter().map(|task| (task.created_ms, task.id));
        newest = tasks.chain(newest).max();
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
        if seen >= LAST_AMONG_MAX {
            let message = format!("there are more than {LAST_AMONG_MAX} tasks to find the last of");
            return Err(Failure::failed_next(message, "name the task by its id"));
        }
    }
    Ok(newest.map(|(_, id)| id))
}

fn freshness(stale: bool) -> Consistency {
    if stale { Consistency::Stale } else { Consistency::Linearizable }
}

async fn enqueue(client: &Client, args: EnqueueArgs, screen: &mut Screen) -> Result<(), Failure> {
    let task = NewTask {
        id: args.id,
        run_at_ms: args.run_at_ms,
        deadline_ms: args.deadline_ms,
        then: args.then,
        ..new_task(args.settings)?
    };
    let key = args.idempotency_key.unwrap_or_else(unique_key);
    let answer = client.enqueue_as(&key, vec![task]).await.map_err(Failure::of_repeatable)?;
    screen.show(&answer)?;
    match answer.tasks.into_iter().find_map(|item| item.problem) {
        Some(problem) => Err(Failure::refused(&problem)),
        None => Ok(()),
    }
}

/// A task as its settings tell.
pub(super) fn new_task(settings: TaskSettings) -> Result<NewTask, Failure> {
    let (payload, payload_base64) =
        read_payload("payload", settings.payload.as_deref(), settings.payload_file.as_deref())?;
    let backoff = settings.backoff_base_ms.zip(settings.backoff_cap_ms);
    Ok(NewTask {
        key: settings.key,
        key_limit: settings.key_limit,
        queue: Some(settings.queue),
        payload,
        payload_base64,
        priority: settings.priority,
        delay_ms: settings.delay_ms,
        max_attempts: settings.max_attempts,
        ttl_ms: settings.ttl_ms,
        backoff: backoff.map(|(base_ms, cap_ms)| BackoffBody { base_ms, cap_ms }),
        labels: read_labels(&settings.labels)?,
        timeout_ms: settings.timeout_ms,
        deadline_in_ms: settings.deadline_in_ms,
        retention_ms: settings.retention_ms,
        program: settings.program.clone(),
        settings: settings.set.iter().cloned().collect(),
        inputs: settings.inputs.clone(),
        reuse: settings.reuse,
        ..NewTask::default()
    })
}

/// Labels by name, each name once.
pub(super) fn read_labels(pairs: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let named: BTreeMap<String, String> = pairs.iter().cloned().collect();
    match named.len() < pairs.len() {
        true => Err(Failure::usage("--label: a name is given twice")),
        false => Ok(named),
    }
}

/// JSON stays JSON; other text becomes a JSON string; a file's bytes stay as they are.
pub(super) fn read_payload(
    what: &str,
    text: Option<&str>,
    path: Option<&str>,
) -> Result<(Option<Box<RawValue>>, Option<String>), Failure> {
    if let Some(text) = text {
        let json = match serde_json::from_str::<Box<RawValue>>(text) {
            Ok(json) => json,
            Err(_) => serde_json::value::to_raw_value(text)
                .map_err(|error| Failure::usage(format!("--{what}: {error}")))?,
        };
        return Ok((Some(json), None));
    }
    let Some(path) = path else {
        return Ok((None, None));
    };
    let mut bytes = Vec::new();
    let read = if path == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::failed(format!("{what} file {path}: {error}")))?;
    let body = Body::of(&bytes);
    Ok((body.json, body.base64))
}

async fn retry(client: &Client, args: ManyArgs, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(queue) = &args.queue {
        let turning = spinner(format!("retrying the dead tasks of queue {queue}"));
        let answer = client.retry_dead(queue).await;
        turning.finish_and_clear();
        return screen.show(&answer?);
    }
    each(&args.ids, screen, async |id| client.retry(id).await).await
}

async fn drop_tasks(client: &Client, args: DropArgs, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(queue) = &args.many.queue {
        let which = if args.finished { "finished" } else { "dead" };
        confirm(args.yes, &format!("Remove all {which} tasks of queue {queue} for good?"))?;
        let turning = spinner(format!("dropping tasks of queue {queue}"));
        let answer = client.drop_dead(queue, args.finished).await;
        turning.finish_and_clear();
        return screen.show(&answer?);
    }
    confirm(args.yes, &format!("Remove {} for good?", args.many.ids.join(", ")))?;
    each(&args.many.ids, screen, async |id| client.drop_task(id).await).await
}

/// One verb for each task. A refusal does not stop the rest; the first one decides how the command ends.
async fn each(
    ids: &[String],
    screen: &mut Screen,
    verb: impl AsyncFn(&str) -> Result<ItemOutcome, Error>,
) -> Result<(), Failure> {
    let (mut done, mut refused) = (Vec::new(), None);
    for id in ids {
        match verb(id).await {
            Ok(outcome) => done.push(outcome),
            Err(Error::Refused(problem)) => {
                eprintln!("{id}: {}", plain(&problem.to_string()));
                refused.get_or_insert(Failure::refused(&problem));
            }
            Err(error) => {
                screen.show(&done)?;
                return Err(error.into());
            }
        }
    }
    screen.show(&done)?;
    refused.map_or(Ok(()), Err)
}

async fn list(client: &Client, args: ListArgs, screen: &mut Screen) -> Result<(), Failure> {
    let query = TaskQuery {
        queue: args.queue,
        state: args.state,
        worker: args.worker,
        find: args.find,
        brief: screen.kind() != OutputKind::Json,
        after: None,
        limit: None,
        consistency: freshness(args.stale),
    };
    let wanted = args.limit as usize;
    if args.watch.follow {
        return watch(&args.watch, screen, || first(client, query.clone(), wanted)).await;
    }
    let all = first(client, query, wanted).await?;
    screen.show(&all)?;
    if all.next.is_some() {
        eprintln!("there are more tasks; raise --limit to see them");
    }
    Ok(())
}

/// The first tasks that fit, page by page.
async fn first(client: &Client, mut query: TaskQuery, wanted: usize) -> Result<TaskPage, Error> {
    let mut all = TaskPage { tasks: Vec::new(), next: None };
    loop {
        query.limit = Some(PAGE.min((wanted - all.tasks.len()) as u32));
        let page = client.tasks(&query).await?;
        all.tasks.extend(page.tasks);
        all.next = page.next;
        if all.tasks.len() >= wanted || all.next.is_none() {
            return Ok(all);
        }
        query.after = all.next.clone();
    }
}
