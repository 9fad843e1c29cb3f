//! Hands the bytes of all inputs to a program, on a thread of its own, while the next ones are on their way.

use std::sync::Arc;

use bytes::Bytes;
use ikada_api::v1::WorkInput;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::ahead::{Ahead, options};
use super::turns::Turn;
use super::{BuiltinError, KEPT_BYTES_MAX, Made, Program, Sources};
use crate::exec::{NearBytes, ObjectBytes, UrlReader, Wanted};
use crate::run::TaskError;

/// Parts of an input that wait for the program.
const PARTS_MAX: usize = 8;
/// Bytes that are handed over at one time: waking a thread for every few that arrive costs more than counting them.
const PART_BYTES: usize = 256 << 10;
/// Pieces that are handed over at one time, however small they are.
const PART_PIECES_MAX: usize = 1_024;

enum Part {
    Begin(String),
    Bytes(Vec<Bytes>),
    /// So many bytes at most from the disk; answered with what could not be had there.
    Near(Box<NearBytes>, u64, oneshot::Sender<(Box<NearBytes>, u64)>),
    End,
}

/// Gathers what arrives until it is worth handing over.
struct Sender {
    parts: mpsc::Sender<Part>,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
}

impl Sender {
    async fn begin(&mut self, name: String) -> Result<(), BuiltinError> {
        self.send(Part::Begin(name)).await
    }

    async fn bytes(&mut self, mut bytes: Bytes) -> Result<(), BuiltinError> {
        // What lies ahead of the program is bounded in parts.
        while bytes.len() > PART_BYTES {
            self.gather(bytes.split_to(PART_BYTES)).await?;
        }
        self.gather(bytes).await
    }

    async fn gather(&mut self, bytes: Bytes) -> Result<(), BuiltinError> {
        self.gathered_bytes += bytes.len();
        self.gathered.push(bytes);
        match self.gathered_bytes >= PART_BYTES || self.gathered.len() >= PART_PIECES_MAX {
            true => self.hand_over().await,
            false => Ok(()),
        }
    }

    /// Bytes that the program fetches itself; gives what it could not have.
    async fn near(
        &mut self,
        near: Box<NearBytes>,
        most: u64,
    ) -> Result<(Box<NearBytes>, u64), BuiltinError> {
        self.hand_over().await?;
        let (answer, answered) = oneshot::channel();
        self.send(Part::Near(near, most, answer)).await?;
        answered.await.map_err(|_| ended_early())
    }

    async fn end(&mut self) -> Result<(), BuiltinError> {
        self.hand_over().await?;
        self.send(Part::End).await
    }

    async fn hand_over(&mut self) -> Result<(), BuiltinError> {
        self.gathered_bytes = 0;
        match std::mem::take(&mut self.gathered) {
            none if none.is_empty() => Ok(()),
            some => self.send(Part::Bytes(some)).await,
        }
    }

    async fn send(&self, part: Part) -> Result<(), BuiltinError> {
        self.parts.send(part).await.map_err(|_| ended_early())
    }
}

fn ended_early() -> BuiltinError {
    BuiltinError::Failed("the program ended early".to_owned())
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
    sources: &Arc<Sources>,
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
    sources: &Arc<Sources>,
    inputs: &[WorkInput],
    program: Box<dyn Program>,
) -> Result<Reading, BuiltinError> {
    let (parts_in, parts) = mpsc::channel(PARTS_MAX);
    let mut sender = Sender { parts: parts_in, gathered: Vec::new(), gathered_bytes: 0 };
    let turn = sources.turns.program(Handle::current());
    let working = tokio::task::spawn_blocking(move || take_in(program, parts, turn));
    let mut read = Ok(());
    let mut ahead = Ahead::new(sources, inputs);
    while let Some((input, here)) = ahead.next().await {
        read = read_one(sources, input, here, &mut sender).await;
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
fn take_in(
    mut program: Box<dyn Program>,
    mut parts: mpsc::Receiver<Part>,
    mut turn: Turn,
) -> Reading {
    while let Some(part) = next_part(&mut parts, &mut turn) {
        let mut again = false;
        turn.take();
        match part {
            Part::Begin(name) => program.begin(&name),
            Part::Bytes(pieces) => {
                for bytes in pieces {
                    program.feed(&bytes);
                    turn.did(bytes.len());
                }
            }
            Part::Near(mut near, most, answer) => {
                // Nobody asks any more once the task was cancelled: then this thread has nothing to go on for.
                let left = near.hand_over(most, |bytes| {
                    program.feed(bytes);
                    turn.did(bytes.len());
                    again = program.wants_again();
                    !again && program.kept() <= KEPT_BYTES_MAX && !answer.is_closed()
                });
                // Whoever has seen enough needs no rest.
                if !again && program.kept() <= KEPT_BYTES_MAX {
                    let _ = answer.send((near, left));
                }
            }
            Part::End => program.end(),
        }
        if program.kept() > KEPT_BYTES_MAX {
            return Reading::TooMuch;
        }
        if again || program.wants_again() {
            return Reading::Again(program);
        }
    }
    // Whoever is at its end waits for no further turn: others wait for what it made.
    let (made, result) = program.finish();
    Reading::Made(made, result)
}

/// The next part; while there is none, others may have the turn.
fn next_part(parts: &mut mpsc::Receiver<Part>, turn: &mut Turn) -> Option<Part> {
    parts.try_recv().ok().or_else(|| {
        turn.pause();
        parts.blocking_recv()
    })
}

async fn read_one(
    sources: &Sources,
    input: &WorkInput,
    here: Option<Vec<Bytes>>,
    sender: &mut Sender,
) -> Result<(), BuiltinError> {
    sender.begin(input.name.clone()).await?;
    if let Some(pieces) = here {
        for bytes in pieces {
            sender.bytes(bytes).await?;
        }
    } else if let Some(text) = &input.text {
        sender.bytes(Bytes::from(text.clone().into_bytes())).await?;
    } else if let Some(url) = &input.url {
        let opened = UrlReader::open(&sources.urls.inputs, url, Wanted::of(input)).await;
        let mut reader = opened.map_err(|error| refused(&error))?;
        while let Some(bytes) = reader.next().await.map_err(|error| refused(&error))? {
            sender.bytes(bytes).await?;
        }
    } else {
        read_object(sources, input, sender).await?;
    }
    sender.end().await
}

/// Why an address was not read; another worker may be allowed to.
fn refused(error: &TaskError) -> BuiltinError {
    BuiltinError::Failed(error.message().to_owned())
}

async fn read_object(
    sources: &Sources,
    input: &WorkInput,
    sender: &mut Sender,
) -> Result<(), BuiltinError> {
    let (Some(bucket), Some(key)) = (&input.bucket, &input.key) else {
        return Err(BuiltinError::Hopeless(format!("input {} has no source", input.name)));
    };
    let failed = |error: ikada_api::client::Error| {
        BuiltinError::Failed(format!("input {bucket}/{key} could not be read: {error}"))
    };
    let mut left = input.length.unwrap_or(u64::MAX);
    if left == 0 {
        return Ok(());
    }
    let mut reader = sources.objects.open(bucket, key, &options(input)).await.map_err(failed)?;
    if let ObjectBytes::Near(near) = reader {
        let (near, rest) = sender.near(near, left).await?;
        if rest == 0 {
            return Ok(());
        }
        (reader, left) = (near.far().await.map_err(failed)?, rest);
    }
    while left > 0
        && let Some(bytes) = reader.next().await.map_err(failed)?
    {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        left -= taken as u64;
        sender.bytes(bytes.slice(..taken)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::turns::Turns;
    use super::*;
    use crate::exec::near_on_disk;

    /// Counts what it is given; at the first of it, whoever asked for it goes.
    struct Left(
        Arc<std::sync::atomic::AtomicUsize>,
        Option<oneshot::Receiver<(Box<NearBytes>, u64)>>,
    );

    impl Program for Left {
        fn begin(&mut self, _: &str) {}
        fn feed(&mut self, bytes: &[u8]) {
            self.0.fetch_add(bytes.len(), std::sync::atomic::Ordering::Relaxed);
            self.1 = None;
        }
        fn end(&mut self) {}
        fn kept(&self) -> usize {
            0
        }
        fn finish(self: Box<Self>) -> (Made, serde_json::Value) {
            (Vec::new(), serde_json::Value::Null)
        }
    }

    // However much lies on the disk: a cancelled task's thread ends with the piece that it has.
    #[test]
    fn b4_33_a_cancelled_task_reads_no_further_from_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let near = near_on_disk(folder.path(), &[b"0123456789", b"abcdefghij", b"xyz"]);
        let (answer, asked) = oneshot::channel();
        let (parts, taken) = mpsc::channel(1);
        parts.try_send(Part::Near(Box::new(near), u64::MAX, answer)).ok().unwrap();
        drop(parts);
        let fed = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let turn = Turns::new().program(runtime.handle().clone());
        take_in(Box::new(Left(fed.clone(), Some(asked))), taken, turn);
        assert_eq!(fed.load(std::sync::atomic::Ordering::Relaxed), 10, "one piece and no more");
    }

    // Order and bytes stay, nothing waits for ever, and small pieces come together.
    #[tokio::test]
    async fn b4_12_small_pieces_are_handed_over_together_and_in_order() {
        let (parts, mut handed) = mpsc::channel(20_000);
        let mut sender = Sender { parts, gathered: Vec::new(), gathered_bytes: 0 };
        let mut expected = Vec::new();
        for name in ["a", "b"] {
            sender.begin(name.to_owned()).await.unwrap();
            for number in 0..5_000_u32 {
                let piece = number.to_string().repeat(20);
                expected.extend_from_slice(piece.as_bytes());
                sender.bytes(Bytes::from(piece)).await.unwrap();
            }
            sender.end().await.unwrap();
        }
        drop(sender);
        let (mut seen, mut names, mut ends, mut times) = (Vec::new(), Vec::new(), 0, 0);
        while let Some(part) = handed.recv().await {
            match part {
                Part::Begin(name) => names.push(name),
                Part::Bytes(pieces) => {
                    times += 1;
                    pieces.iter().for_each(|piece| seen.extend_from_slice(piece));
                }
                Part::Near(..) => panic!("nothing of it lies on this disk"),
                Part::End => ends += 1,
            }
        }
        assert_eq!(
            (names, ends, seen == expected),
            (vec!["a".to_owned(), "b".to_owned()], 2, true)
        );
        assert!(times <= 2 * (5_000 / PART_PIECES_MAX + 1), "{times} times");
    }
}
