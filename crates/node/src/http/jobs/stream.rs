//! `GET /v1/jobs/{id}/events` as a live stream: one event `job` per change, with its revision as id, until the job has ended.
//!
//! Changes that come faster than one looks are told as one: what counts is how the job stands. A reader who comes again with
//! `Last-Event-ID` hears only what is newer. How streams begin and end is in `http/stream.rs`.

use std::sync::Arc;
use std::time::Duration;

use ikada_api::convert::show_job;
use ikada_api::state::{Job, JobId, JobState, Namespace};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use super::show::look;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::stream::{News, begin};

/// How long a look may take; one that takes longer is made again.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn stream<D: Door>(
    app: &App<D>,
    context: &Context,
    after: u64,
) -> Result<Reply, Stop> {
    let last: Option<u64> = context.last_event_as("must be the id of an event of this stream")?;
    // As fresh as asked for, so that whoever has just submitted it is not told that it does not exist.
    let (_, job) = look(app, context).await?;
    let key = (context.namespace.clone(), job.id().clone());
    let told = last.unwrap_or(after);
    let news = Changes { door: app.door.clone(), key, job, told, is_begun: false };
    begin(app, context, news)
}

/// How a job stands, for one reader.
struct Changes<D> {
    door: D,
    key: (Namespace, JobId),
    /// As it was last seen.
    job: Arc<Job>,
    /// The revision that the reader knows.
    told: u64,
    /// Whether the job must be looked at anew.
    is_begun: bool,
}

impl<D: Door> News for Changes<D> {
    const NAME: &'static str = "job";
    // People watch, and a look is cheap.
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    const PIECES_MAX: usize = 16;

    async fn look(&mut self, piece: &mut String) -> bool {
        if std::mem::replace(&mut self.is_begun, true) && !self.renew().await {
            return false;
        }
        let ended = self.job.state() != JobState::Running;
        // The end is told in any case: a reader who missed nothing must learn that nothing follows.
        if self.job.revision() > self.told || ended {
            self.told = self.job.revision();
            let data = serde_json::to_string(&show_job(&self.job)).unwrap_or_default();
            piece.push_str(&format!("id: {}\nevent: job\ndata: {data}\n\n", self.told));
        }
        !ended
    }
}

impl<D: Door> Changes<D> {
    /// Looks at the job; false if there is none any more.
    async fn renew(&mut self) -> bool {
        let read = Request::Read(Query::Job(self.key.clone()), Consistency::Stale);
        // Our own copy: it may be behind, never ahead. One whose record is gone has been told of for as long as it was kept.
        match self.door.call(read, LOOK_PATIENCE, Routing::Forward).await {
            Answer::View { view: View::Job(Some(seen)), .. } if seen.revision() >= self.told => {
                self.job = seen;
            }
            Answer::View { view: View::Job(None), .. } if self.told > 0 => return false,
            _ => {}
        }
        true
    }
}
