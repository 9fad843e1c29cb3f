//! What became of one caller's item.

use super::Load;
use crate::client::Error;
use crate::problem::Problem;
use crate::v1::{ItemOutcome, OutcomeKind};

/// An item's place in a request: what `GET /v1/requests/{request}?item={item}` asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The request id of the batch.
    pub request: String,
    /// The item's number in it, from 0.
    pub item: u32,
}

/// Why one item has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// Decided against; sending it again gives the same.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// It did not happen; try again later.
    #[error("the item was not taken: {detail}")]
    Unavailable {
        /// What stood in the way.
        detail: String,
    },
    /// It may or may not have happened. Sending the same item again with this id is safe.
    #[error("the outcome for task {id} is unknown: {detail}")]
    Unknown {
        /// The task, also where the caller had left the id to be derived.
        id: String,
        /// Where to ask; absent where the item is safe to repeat by itself (a completion).
        place: Option<Place>,
        /// What the last try met.
        detail: String,
    },
    /// The runtime that sends batches has ended with this item in hand; it may or may not have been sent.
    #[error("the batcher has ended before the item was answered")]
    Abandoned,
}

impl ItemError {
    /// The problem's stable code, if the cluster gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            ItemError::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }
}

/// One item's own part of a list's answer.
pub(super) fn of_item<L: Load>(
    load: &L,
    key: &str,
    place: usize,
    item: &L::Item,
    outcome: ItemOutcome,
) -> Result<ItemOutcome, ItemError> {
    let words = |problem: Option<Box<Problem>>| match problem {
        Some(problem) => problem.to_string(),
        None => "no reason given".to_owned(),
    };
    match outcome.outcome {
        OutcomeKind::Refused => Err(ItemError::Refused(outcome.problem.unwrap_or_else(|| {
            Box::new(Problem::new(400, "unexplained", "unexplained refusal", "no reason given"))
        }))),
        OutcomeKind::Unavailable => Err(ItemError::Unavailable { detail: words(outcome.problem) }),
        OutcomeKind::Unknown => Err(open_item(load, key, place, item, &words(outcome.problem))),
        _ => Ok(outcome),
    }
}

/// What a failed list call means for one of its items.
pub(super) fn of_call<L: Load>(
    load: &L,
    key: &str,
    place: usize,
    item: &L::Item,
    error: &Error,
) -> ItemError {
    match error {
        Error::Refused(problem) => ItemError::Refused(problem.clone()),
        Error::Unavailable { detail, .. } => ItemError::Unavailable { detail: detail.clone() },
        // An answer that cannot be read was an answer: the request was received.
        Error::Unknown { detail, .. } | Error::Protocol { detail } => {
            open_item(load, key, place, item, detail)
        }
    }
}

fn open_item<L: Load>(
    load: &L,
    key: &str,
    place: usize,
    item: &L::Item,
    detail: &str,
) -> ItemError {
    let (id, place) = load.name(key, place, item);
    ItemError::Unknown { id, place, detail: detail.to_owned() }
}
