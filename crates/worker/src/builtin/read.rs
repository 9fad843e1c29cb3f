//! Hands the bytes of all inputs to a program, on a thread of its own, while the next ones are on their way.

use bytes::Bytes;
use ikada_api::client::GetOptions;
use ikada_api::v1::WorkInput;
use tokio::sync::mpsc;

use super::{BuiltinError, KEPT_BYTES_MAX, Made, Program, Sources};
use crate::exec::{UrlReader, Wanted};
use crate::run::TaskError;

/// Parts of an input that wait for the program.
const PARTS_MAX: usize = 8;

enum Part {
    Begin(String),
    Bytes(Bytes),
    End,
}

/// What one reading of all inputs came to.
enum Reading {
    Made(Made, serde_json::Value),
    /// They must be read once more.
    Again(Box<dyn Program>),
    /// It keeps too much.
    TooMuch,
}

/// Reads all inputs in order and lets the program finish.
pub(super) async fn read_all(
    sources: &Sources,
    inputs: &[WorkInput],
    mut program: Box<dyn Program>,
) -> Result<(Made, serde_json::Value), BuiltinError> {
    loop {
        match read_once(sources, inputs, program).await? {
            Reading::Made(made, result) => return Ok((made, result)),
            Reading::Again(again) => program = again,
            Reading::TooMuch => {
                return Err(BuiltinError::Hopeless(format!(
                    "what it keeps is more than {KEPT_BYTES_MAX} bytes; give it less at a time, \
                     or push a program that needs less memory"
                )));
            }
        }
    }
}

async fn read_once(
    sources: &Sources,
    inputs: &[WorkInput],
    program: Box<dyn Program>,
) -> Result<Reading, BuiltinError> {
    let (sender, parts) = mpsc::channel(PARTS_MAX);
    let working = tokio::task::spawn_blocking(move || take_in(program, parts));
    let mut read = Ok(());
    for input in inputs {
        read = read_one(sources, input, &sender).await;
        if read.is_err() {
            break;
        }
    }
    drop(sender);
    let gone = |error| BuiltinError::Failed(format!("the program broke off: {error}"));
    let reading = working.await.map_err(gone)?;
    match (read, reading) {
        // It has seen enough to know.
        (_, early @ (Reading::Again(_) | Reading::TooMuch)) => Ok(early),
        (Ok(()), made) => Ok(made),
        (Err(error), Reading::Made(..)) => Err(error),
    }
}

/// The program's side: takes parts until they end, or until it need not see the rest.
fn take_in(mut program: Box<dyn Program>, mut parts: mpsc::Receiver<Part>) -> Reading {
    while let Some(part) = parts.blocking_recv() {
        match part {
            Part::Begin(name) => program.begin(&name),
            Part::Bytes(bytes) => program.feed(&bytes),
            Part::End => program.end(),
        }
        if program.kept() > KEPT_BYTES_MAX {
            return Reading::TooMuch;
        }
        if program.wants_again() {
            return Reading::Again(program);
        }
    }
    let (made, result) = program.finish();
    Reading::Made(made, result)
}

async fn read_one(
    sources: &Sources,
    input: &WorkInput,
    parts: &mpsc::Sender<Part>,
) -> Result<(), BuiltinError> {
    send(parts, Part::Begin(input.name.clone())).await?;
    if let Some(text) = &input.text {
        send(parts, Part::Bytes(Bytes::from(text.clone().into_bytes()))).await?;
    } else if let Some(url) = &input.url {
        let opened = UrlReader::open(&sources.urls, url, Wanted::of(input)).await;
        let mut reader = opened.map_err(|error| refused(&error))?;
        while let Some(bytes) = reader.next().await.map_err(|error| refused(&error))? {
            send(parts, Part::Bytes(bytes)).await?;
        }
    } else {
        read_object(sources, input, parts).await?;
    }
    send(parts, Part::End).await
}

async fn send(parts: &mpsc::Sender<Part>, part: Part) -> Result<(), BuiltinError> {
    let gone = |_| BuiltinError::Failed("the program ended early".to_owned());
    parts.send(part).await.map_err(gone)
}

/// Why an address was not read; another worker may be allowed to.
fn refused(error: &TaskError) -> BuiltinError {
    BuiltinError::Failed(error.message().to_owned())
}

async fn read_object(
    sources: &Sources,
    input: &WorkInput,
    parts: &mpsc::Sender<Part>,
) -> Result<(), BuiltinError> {
    let (Some(bucket), Some(key)) = (&input.bucket, &input.key) else {
        return Err(BuiltinError::Hopeless(format!("input {} has no source", input.name)));
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
    let mut reader = sources.client.get_object(bucket, key, &options).await.map_err(failed)?;
    while left > 0
        && let Some(bytes) = reader.next().await.map_err(failed)?
    {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        left -= taken as u64;
        send(parts, Part::Bytes(bytes.slice(..taken))).await?;
    }
    Ok(())
}
