//! Small inputs that are fetched before their turn: asking for one after the other would make a program with many of them
//! wait for answers most of the time.
//!
//! Promises: bytes are handed over in the order of the inputs; what is held in memory is bounded in bytes; a download that nobody
//! takes from is never begun ahead, since nodes end those. What is large, at an address, or could not be had is left to its
//! turn, and any error with it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use ikada_api::client::GetOptions;
use ikada_api::v1::WorkInput;
use tokio::task::JoinHandle;

use super::Sources;

/// Inputs that are fetched ahead.
const INPUTS_MAX: usize = 8;
/// Largest of them.
const BYTES_MAX: u64 = 1 << 20;

/// What was learned of an input before its turn.
enum Found {
    /// All of it.
    Whole(Vec<Bytes>),
    /// It is too large.
    Large,
    /// Nothing.
    Nothing,
}

/// Inputs in their order, and some of them on their way.
pub(super) struct Ahead<'a> {
    sources: Arc<Sources>,
    inputs: std::slice::Iter<'a, WorkInput>,
    coming: VecDeque<(&'a WorkInput, JoinHandle<Found>)>,
    /// One was large, so the others may be as well.
    are_large: bool,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(sources: &Arc<Sources>, inputs: &'a [WorkInput]) -> Ahead<'a> {
        // A single one has its turn at once.
        let are_large = inputs.len() < 2;
        let (sources, inputs) = (sources.clone(), inputs.iter());
        Ahead { sources, inputs, coming: VecDeque::new(), are_large }
    }

    /// The next input, with its bytes if they are here.
    pub(super) async fn next(&mut self) -> Option<(&'a WorkInput, Option<Vec<Bytes>>)> {
        while !self.are_large
            && self.coming.len() < INPUTS_MAX
            && let Some(input) = self.inputs.next()
        {
            let (sources, wanted) = (self.sources.clone(), input.clone());
            self.coming
                .push_back((input, tokio::spawn(async move { fetch(&sources, &wanted).await })));
        }
        let Some((input, coming)) = self.coming.pop_front() else {
            return Some((self.inputs.next()?, None));
        };
        // One that broke off is asked for again.
        match coming.await.unwrap_or(Found::Nothing) {
            Found::Whole(bytes) => Some((input, Some(bytes))),
            Found::Large => {
                self.are_large = true;
                Some((input, None))
            }
            Found::Nothing => Some((input, None)),
        }
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.coming.iter().for_each(|(_, coming)| coming.abort());
    }
}

async fn fetch(sources: &Sources, input: &WorkInput) -> Found {
    let (Some(bucket), Some(key)) = (&input.bucket, &input.key) else { return Found::Nothing };
    if input.length == Some(0) {
        return Found::Whole(Vec::new());
    }
    let Ok(mut reader) = sources.objects.open(bucket, key, &options(input)).await else {
        return Found::Nothing;
    };
    let mut left = input.length.unwrap_or(u64::MAX).min(reader.left());
    if left > BYTES_MAX {
        return Found::Large;
    }
    let mut all = Vec::new();
    while left > 0 {
        let Ok(Some(bytes)) = reader.next().await else { return Found::Nothing };
        let taken = bytes.len().min(left as usize);
        left -= taken as u64;
        all.push(bytes.slice(..taken));
    }
    Found::Whole(all)
}

/// How an object is asked for.
pub(super) fn options(input: &WorkInput) -> GetOptions {
    GetOptions {
        version: input.version.map(|version| version.0),
        from: input.offset.unwrap_or(0),
        if_match: input.digest.clone(),
        ..GetOptions::default()
    }
}
