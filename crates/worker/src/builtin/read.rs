//! Hands the bytes of all inputs to a program, on a thread of its own, while the next ones are on their way.

use bytes::Bytes;
use ikada_api::Client;
use ikada_api::client::GetOptions;
use ikada_api::v1::WorkInput;
use tokio::sync::mpsc;

use super::{BuiltinError, Made, Program};

/// Parts of an input that wait for the program.
const PARTS_MAX: usize = 8;

enum Part {
    Begin(String),
    Bytes(Bytes),
    End,
}

/// Reads all inputs in order and lets the program finish.
pub(super) async fn read_all(
    client: &Client,
    inputs: &[WorkInput],
    mut program: Box<dyn Program>,
) -> Result<(Made, serde_json::Value), BuiltinError> {
    let (sender, mut parts) = mpsc::channel(PARTS_MAX);
    let working = tokio::task::spawn_blocking(move || {
        while let Some(part) = parts.blocking_recv() {
            match part {
                Part::Begin(name) => program.begin(&name),
                Part::Bytes(bytes) => program.feed(&bytes),
                Part::End => program.end(),
            }
        }
        program.finish()
    });
    let gone = || BuiltinError::Failed("the program ended early".to_owned());
    for input in inputs {
        sender.send(Part::Begin(input.name.clone())).await.map_err(|_| gone())?;
        read_one(client, input, &sender).await?;
        sender.send(Part::End).await.map_err(|_| gone())?;
    }
    drop(sender);
    working.await.map_err(|error| BuiltinError::Failed(format!("the program broke off: {error}")))
}

async fn read_one(
    client: &Client,
    input: &WorkInput,
    parts: &mpsc::Sender<Part>,
) -> Result<(), BuiltinError> {
    let gone = || BuiltinError::Failed("the program ended early".to_owned());
    if let Some(text) = &input.text {
        let bytes = Bytes::from(text.clone().into_bytes());
        return parts.send(Part::Bytes(bytes)).await.map_err(|_| gone());
    }
    let (Some(bucket), Some(key)) = (&input.bucket, &input.key) else {
        let name = &input.name;
        return Err(BuiltinError::Hopeless(format!(
            "input {name}: built-in programs read objects and texts only"
        )));
    };
    let failed = |error: ikada_api::client::Error| {
        BuiltinError::Failed(format!("input {bucket}/{key} could not be read: {error}"))
    };
    let options = GetOptions {
        version: input.version.map(|version| version.0),
        from: input.offset.unwrap_or(0),
        if_match: input.digest.clone(),
        ..GetOptions::default()
    };
    let mut left = input.length.unwrap_or(u64::MAX);
    if left == 0 {
        return Ok(());
    }
    let mut reader = client.get_object(bucket, key, &options).await.map_err(failed)?;
    while left > 0
        && let Some(bytes) = reader.next().await.map_err(failed)?
    {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        left -= taken as u64;
        parts.send(Part::Bytes(bytes.slice(..taken))).await.map_err(|_| gone())?;
    }
    Ok(())
}
