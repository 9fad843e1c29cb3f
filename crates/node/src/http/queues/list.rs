//! `GET /v1/queues`: by name and a page at a time, or those first that need a look.

use std::sync::Mutex;

use ikada_api::convert::show_queue;
use ikada_api::state::QueueView;
use ikada_api::v1::{QueueCounts, QueueInfo, QueuePage};
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::{App, health};
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::some_limit;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};
use crate::watch::Samples;

/// Which queues a page has.
#[derive(Default)]
pub(in crate::http) struct Wish<'a> {
    /// Only those with this in their names.
    pub(in crate::http) find: &'a str,
    /// Those first that need a look.
    pub(in crate::http) by_need: bool,
    /// Only those behind this name.
    pub(in crate::http) after: Option<&'a str>,
    pub(in crate::http) limit: usize,
}

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let by_need = match context.query("order") {
        None | Some("name") => false,
        Some("need") => true,
        Some(_) => return Err(problems::bad_parameter("order", "must be name or need").into()),
    };
    let (find, after) = (context.query("find").unwrap_or(""), context.query("after"));
    let wish = Wish { find, by_need, after, limit: some_limit(app, context)? };
    let seen = read(app, context, Query::Queues(context.namespace.clone())).await?;
    match &seen.view {
        View::Queues(queues) => show_view(context, &seen, &page(&app.samples(), queues, &wish)),
        _ => Err(mismatch("list queues")),
    }
}

/// The page of queues that was wished for, with the sum over all that fit.
pub(in crate::http) fn page(
    samples: &Mutex<Samples>,
    all: &[QueueView],
    wish: &Wish<'_>,
) -> QueuePage {
    let describe =
        |view: &&QueueView| QueueInfo { health: health(samples, view), ..show_queue(view) };
    let fitting: Vec<&QueueView> =
        all.iter().filter(|view| view.name.as_str().contains(wish.find)).collect();
    let mut sum = QueueCounts::default();
    for view in &fitting {
        add(&mut sum, &show_queue(view).counts);
    }
    let total = fitting.len() as u64;
    if wish.by_need {
        let mut queues: Vec<QueueInfo> = fitting.iter().map(describe).collect();
        queues.sort_by_key(|queue| std::cmp::Reverse(need(queue)));
        queues.truncate(wish.limit);
        return QueuePage { queues, next: None, total, sum };
    }
    let behind = |view: &&&QueueView| wish.after.is_none_or(|after| view.name.as_str() > after);
    let rest: Vec<&QueueView> = fitting.iter().filter(behind).copied().collect();
    let queues: Vec<QueueInfo> = rest.iter().take(wish.limit).map(describe).collect();
    let next = queues.last().filter(|_| rest.len() > wish.limit).map(|queue| queue.name.clone());
    QueuePage { queues, next, total, sum }
}

/// Whether a queue needs a look, then how much is in it.
fn need(queue: &QueueInfo) -> (bool, bool, u64) {
    let counts = &queue.counts;
    let unfinished = counts.ready + counts.claimed + counts.scheduled;
    (!queue.health.alerts.is_empty(), queue.settings.paused, unfinished)
}

fn add(sum: &mut QueueCounts, more: &QueueCounts) {
    sum.scheduled += more.scheduled;
    sum.ready += more.ready;
    sum.claimed += more.claimed;
    sum.finished += more.finished;
    sum.submitted_total += more.submitted_total;
    sum.done_total += more.done_total;
    sum.dead_total += more.dead_total;
    sum.cancelled_total += more.cancelled_total;
    sum.removed_total += more.removed_total;
    sum.retried_total += more.retried_total;
    sum.failed_attempts_total += more.failed_attempts_total;
}
