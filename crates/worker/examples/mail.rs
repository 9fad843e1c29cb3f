//! Submits letters and runs them, as docs/client.md tells it: `cargo run -p ikada-worker --example mail -- URL,URL,...`

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Enqueuer, ItemError};
use ikada_api::v1::NewTask;
use ikada_worker::{Claimed, TaskError, TaskResult, Worker};
use serde_json::json;

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let urls = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7400".to_owned());
    let client = Client::new(urls.split(','))?;
    let ids = submit(&client, &["ann", "bob", "nobody"]).await?;
    work(&client, &ids).await?;
    show(&client, &ids).await
}

/// One call per letter, a few requests on the wire.
pub async fn submit(client: &Client, people: &[&'static str]) -> Result<Vec<String>, Failed> {
    let enqueuer = Enqueuer::new(client.clone());
    let mut letters = Vec::new();
    for &person in people {
        let enqueuer = enqueuer.clone();
        letters.push(tokio::spawn(async move {
            let task = NewTask {
                queue: Some("mail".to_owned()),
                payload: Some(serde_json::value::to_raw_value(&json!({ "to": person }))?),
                ..NewTask::default()
            };
            match enqueuer.enqueue(task.clone()).await {
                Ok(outcome) => Ok(outcome.id),
                // Nobody knows whether it was taken: with this id it is safe to ask, or to submit it again.
                Err(ItemError::Unknown { id, .. }) => {
                    enqueuer.enqueue(NewTask { id: Some(id.clone()), ..task }).await?;
                    Ok::<_, Failed>(id)
                }
                Err(other) => Err(other.into()),
            }
        }));
    }
    let mut ids = Vec::new();
    for letter in letters {
        ids.push(letter.await??);
    }
    Ok(ids)
}

/// What to do with one letter. It may run more than once: the fence tells a later attempt from an earlier one.
async fn write_letter(letter: Claimed) -> Result<TaskResult, TaskError> {
    let body: serde_json::Value = letter.json()?;
    let Some(person) = body["to"].as_str() else {
        return Err(TaskError::give_up("the payload names nobody to write to"));
    };
    if person == "nobody" && letter.attempt < 2 {
        return Err(TaskError::new("nobody is out").retry_after(Duration::from_millis(100)));
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let sent = json!({ "sent_to": person, "fence": letter.fence.to_string() });
    let next = NewTask { queue: Some("archive".to_owned()), ..NewTask::default() };
    Ok(TaskResult::from(sent).then(next))
}

/// Works until all letters are written; a service would `run` until it is told to end.
pub async fn work(client: &Client, ids: &[String]) -> Result<(), Failed> {
    let worker = Worker::new(client.clone())
        .name("mailer-1")
        .slots(8)
        .poll(Duration::from_secs(1))
        .drain_timeout(Duration::from_secs(10))
        .handle("mail", write_letter);
    let tally = worker.run_until(all_done(client, ids)).await?;
    println!("{} letters written, {} attempts failed", tally.completed, tally.failed);
    Ok(())
}

/// Waits until the letters are finished.
async fn all_done(client: &Client, ids: &[String]) {
    for id in ids {
        while !client.task(id).await.is_ok_and(|task| task.state.is_finished()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Reads the results.
pub async fn show(client: &Client, ids: &[String]) -> Result<(), Failed> {
    for id in ids {
        let task = client.task(id).await?;
        let result = String::from_utf8(task.result()?)?;
        println!("{id}: {} after {} attempts: {result}", task.state.as_str(), task.attempts_begun);
    }
    Ok(())
}
