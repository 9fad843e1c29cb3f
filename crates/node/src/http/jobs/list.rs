//! `GET /v1/jobs`: by id, or the newest first; all, or those that stand in a way or have a text in their ids or names.
//!
//! By id a page is read as it is. Whatever else is wanted looks at all jobs of the namespace, of which a shard holds 10,000 at
//! most; nothing of them is copied but those of the page.

use std::cmp::Reverse;
use std::sync::Arc;

use ikada_api::convert::{parse_name, show_job};
use ikada_api::state::{Job, JobId, JobPage as Page};
use ikada_api::v1::JobPage;
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::objects::page_limit;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, read, show_view};

/// Jobs that are looked at with one question.
const LOOK_AT: usize = 1_000;
/// Every way in which a job may stand.
const STATUSES: [&str; 6] = ["not_started", "in_progress", "halted", "done", "error", "cancelled"];

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let limit = page_limit(app, context)?;
    let wanted = Wanted::read(context)?;
    let after = context.query("after");
    if wanted.is_newest_first {
        let after = after.map(read_place).transpose()?;
        let (seen, mut jobs) = all(app, context, &wanted).await?;
        let place = |job: &Job| (Reverse(job.submitted_ms()), job.id().clone());
        jobs.retain(|job| after.as_ref().is_none_or(|after| place(job) > *after));
        jobs.sort_by_cached_key(|job| place(job));
        return answer(context, &seen, jobs, limit, |job| {
            format!("{}.{}", job.submitted_ms(), job.id())
        });
    }
    let after = after.map(|text| parse_name("after", text, JobId::parse));
    let after = after.transpose().map_err(|error| problems::bad_field(&error))?;
    if wanted.is_all() {
        let query = Query::Jobs { namespace: context.namespace.clone(), after, limit };
        let seen = read(app, context, query).await?;
        let page = page_of(&seen)?;
        let jobs = page.jobs.iter().map(|job| show_job(job)).collect();
        let next = page.next.as_ref().map(ToString::to_string);
        return show_view(context, &seen, &JobPage { jobs, next });
    }
    let (seen, mut jobs) = all(app, context, &wanted).await?;
    jobs.retain(|job| after.as_ref().is_none_or(|after| job.id() > after));
    answer(context, &seen, jobs, limit, |job| job.id().to_string())
}

/// Which jobs are wanted, and in which order.
struct Wanted<'a> {
    find: Option<&'a str>,
    status: Option<&'a str>,
    is_newest_first: bool,
}

impl<'a> Wanted<'a> {
    fn read(context: &'a Context) -> Result<Wanted<'a>, Stop> {
        let status = context.query("status").filter(|text| !text.is_empty());
        if status.is_some_and(|status| !STATUSES.contains(&status)) {
            let rule = format!("must be one of {}", STATUSES.join(", "));
            return Err(problems::bad_parameter("status", rule).into());
        }
        let is_newest_first = match context.query("order") {
            None | Some("id") => false,
            Some("newest") => true,
            Some(_) => return Err(problems::bad_parameter("order", "must be id or newest").into()),
        };
        let find = context.query("find").filter(|text| !text.is_empty());
        Ok(Wanted { find, status, is_newest_first })
    }

    fn is_all(&self) -> bool {
        self.find.is_none() && self.status.is_none()
    }

    fn has(&self, job: &Job) -> bool {
        let named = |text: &str| job.id().as_str().contains(text) || job.spec().name.contains(text);
        self.find.is_none_or(named)
            && self.status.is_none_or(|status| job.status().as_str() == status)
    }
}

/// All jobs that are wanted, in order of their ids. The first look is as fresh as the caller asked for; what follows is told by
/// whoever has come at least as far as the one before.
async fn all<D: Door>(
    app: &App<D>,
    context: &Context,
    wanted: &Wanted<'_>,
) -> Result<(Seen, Vec<Arc<Job>>), Stop> {
    let query = |after| Query::Jobs { namespace: context.namespace.clone(), after, limit: LOOK_AT };
    let first = read(app, context, query(None)).await?;
    let (mut jobs, mut after) = (Vec::new(), None);
    let mut least = first.positions().to_vec();
    loop {
        let seen;
        let page = match after {
            None => page_of(&first)?,
            Some(after) => {
                let next = Request::Read(query(Some(after)), Consistency::AtLeast(least));
                let answer = call(app, context, next, Routing::Forward).await?;
                seen = Seen::of(answer).ok_or_else(|| mismatch("list jobs"))?;
                least = seen.positions().to_vec();
                page_of(&seen)?
            }
        };
        jobs.extend(page.jobs.iter().filter(|job| wanted.has(job)).cloned());
        after = page.next.clone();
        if after.is_none() {
            return Ok((first, jobs));
        }
    }
}

fn page_of(seen: &Seen) -> Result<&Page, Stop> {
    match &seen.view {
        View::Jobs(page) => Ok(page),
        _ => Err(mismatch("list jobs")),
    }
}

/// The first of these jobs, and where the next page begins.
fn answer(
    context: &Context,
    seen: &Seen,
    mut jobs: Vec<Arc<Job>>,
    limit: usize,
    place: impl Fn(&Job) -> String,
) -> Result<Reply, Stop> {
    let has_more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| has_more).map(|job| place(job));
    let jobs = jobs.iter().map(|job| show_job(job)).collect();
    show_view(context, seen, &JobPage { jobs, next })
}

/// Where a page of the newest begins: behind a job that was submitted at a time.
fn read_place(text: &str) -> Result<(Reverse<u64>, JobId), Stop> {
    let place = text.split_once('.').and_then(|(submitted_ms, id)| {
        Some((Reverse(submitted_ms.parse().ok()?), JobId::parse(id).ok()?))
    });
    place.ok_or_else(|| problems::bad_parameter("after", "must be the next of a page").into())
}
