//! A look at the state, as fresh as the caller asked for.

use hyper::StatusCode;
use ikada_api::state::{Lsn, ShardId};
use ikada_replica::call::{Answer, Consistency, Query, Request, View};

use crate::http::answer::{Reply, Stop, add_age, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::request::Context;

/// What was seen, where and how old.
#[derive(Debug)]
pub(in crate::http) struct Seen {
    pub(in crate::http) view: View,
    positions: Vec<(ShardId, Lsn)>,
    age_ms: u64,
}

impl Seen {
    /// Where it was seen.
    pub(in crate::http) fn positions(&self) -> &[(ShardId, Lsn)] {
        &self.positions
    }

    /// What an answer shows; none if it is no view.
    pub(in crate::http) fn of(answer: Answer) -> Option<Seen> {
        match answer {
            Answer::View { view, lsns, age_ms } => Some(Seen { view, positions: lsns, age_ms }),
            _ => None,
        }
    }
}

/// Reads.
pub(in crate::http) async fn read<D: Door>(
    app: &App<D>,
    context: &Context,
    query: Query,
) -> Result<Seen, Stop> {
    let request = Request::Read(query, context.consistency.clone());
    let answer = call(app, context, request, context.routing).await?;
    Seen::of(answer).ok_or_else(|| mismatch("read"))
}

/// The answer to a read, labelled with its position and, if stale, its age.
pub(in crate::http) fn show_view<T: serde::Serialize>(
    context: &Context,
    seen: &Seen,
    document: &T,
) -> Result<Reply, Stop> {
    let mut response = show_document(context, StatusCode::OK, document)?;
    label(&mut response, context, seen);
    Ok(response)
}

/// Labels the answer to a read with its position and, if stale, its age.
pub(in crate::http) fn label(response: &mut Reply, context: &Context, seen: &Seen) {
    add_positions(response, &seen.positions);
    if context.consistency == Consistency::Stale {
        add_age(response, seen.age_ms);
    }
}
