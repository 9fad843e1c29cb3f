//! What all requests share.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ikada_api::Problem;
use ikada_api::convert::Form;
use ikada_api::state::{RequestId, RequestKey};
use ikada_api::v1::{QueueHealth, ScheduleInfo};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use ikada_replica::state::{QueueView, Schedule};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::door::Door;
use super::guard::OwnHosts;
use super::limits::HttpLimits;
use super::problems;
use super::request::Context;
use super::security::Security;
use super::strangers::Strangers;
use crate::admission::{Admission, Lane, Reason, Rooms, Seat};
use crate::auth::{Principal, REFRESH_EVERY};
use crate::metrics::HttpCounters;
use crate::quotas::{LOOK_EVERY, Quotas};
use crate::watch::{SAMPLE_EVERY, Samples, judge, wall_ms};

/// Bodies are accounted in steps of this size.
pub(super) const BODY_UNIT_BYTES: usize = 1 << 10;

/// How long a look at all queues or schedules may take.
const QUEUES_PATIENCE: Duration = Duration::from_secs(2);

/// Strange tokens make the node look at its tokens this often at most.
const STRANGE_EVERY: Duration = Duration::from_millis(50);

/// The shared part of the client door.
pub(super) struct App<D> {
    pub(super) door: D,
    pub(super) limits: HttpLimits,
    pub(super) counters: HttpCounters,
    /// Decides who is let in when the node is busy.
    pub(super) admission: Arc<Admission>,
    /// Places for requests in flight, and for transfers of objects.
    pub(super) rooms: Rooms,
    /// Permits for body bytes, in units.
    pub(super) bodies: Semaphore,
    /// Permits for event streams; held by their tasks.
    pub(super) streams: Arc<Semaphore>,
    /// Turns true when the door closes.
    pub(super) stopping: tokio::sync::watch::Receiver<bool>,
    /// Who is let in.
    pub(super) security: Security,
    /// Tells of those who are not.
    pub(super) strangers: Strangers,
    /// Names under which clients reach this node.
    pub(super) hosts: OwnHosts,
    /// What tenants may take.
    pub(super) quotas: Quotas,
    /// The caller where no tokens are asked for.
    pub(super) anyone: Arc<Principal>,
    /// When the tokens were last looked at because a strange one came.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
    /// How queues did lately.
    samples: Arc<Mutex<Samples>>,
    draws: AtomicU64,
    seed: u64,
}

impl<D: Door> App<D> {
    /// The caller's request id, or a fresh one.
    pub(super) fn request_id(&self, context: &Context) -> RequestId {
        context.key.clone().unwrap_or_else(|| self.door.fresh_request_id())
    }

    /// The same, with the key of a request that is one item.
    pub(super) fn request_key(&self, context: &Context) -> (RequestId, RequestKey) {
        let id = self.request_id(context);
        (id.clone(), RequestKey { id, item: 0 })
    }

    pub(super) fn new(
        door: D,
        limits: HttpLimits,
        security: Security,
        admission: Arc<Admission>,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> App<D> {
        let counters = HttpCounters::default();
        counters.insecure.store(u64::from(security.insecure), Ordering::Relaxed);
        App {
            anyone: Arc::new(Principal::anyone()),
            strangers: Strangers::default(),
            refreshed: tokio::sync::Mutex::default(),
            quotas: Quotas::default(),
            hosts: OwnHosts::new(&door.info().client_addr, &security.hosts),
            security,
            rooms: Rooms::new(limits.requests_max, limits.uploads_max, limits.downloads_max),
            admission,
            bodies: Semaphore::new(limits.bodies_bytes_max / BODY_UNIT_BYTES),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            counters,
            samples: Arc::default(),
            draws: AtomicU64::new(0),
            seed: RandomState::new().hash_one(std::process::id()),
            door,
            limits,
            stopping,
        }
    }

    /// All queues as this node has them; empty while it cannot tell.
    pub(super) async fn every_queue(&self) -> Vec<QueueView> {
        let read = Request::Read(Query::EveryQueue, Consistency::Stale);
        match self.door.call(read, QUEUES_PATIENCE, Routing::Forward).await {
            Answer::View { view: View::Queues(queues), .. } => queues,
            _ => Vec::new(),
        }
    }

    /// All schedules as this node has them, with their namespaces; empty while it cannot tell.
    pub(super) async fn every_schedule(&self) -> Vec<(String, ScheduleInfo)> {
        let read = Request::Read(Query::EverySchedule, Consistency::Stale);
        match self.door.call(read, QUEUES_PATIENCE, Routing::Forward).await {
            Answer::View { view: View::Schedules(all), .. } => {
                let show = |schedule: &Arc<Schedule>| {
                    let shown = super::schedules::describe(schedule, Form::Json);
                    (schedule.namespace.to_string(), shown)
                };
                all.iter().map(show).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How a queue does.
    pub(super) fn health(&self, view: &QueueView) -> QueueHealth {
        health(&self.samples, view)
    }

    /// How queues did lately, for a stream that outlives its call.
    pub(super) fn samples(&self) -> Arc<Mutex<Samples>> {
        self.samples.clone()
    }

    /// Takes samples of all queues until the door closes.
    pub(super) async fn watch_queues(self: Arc<Self>) {
        let mut stopping = self.stopping.clone();
        loop {
            let views = self.every_queue().await;
            self.samples.lock().unwrap_or_else(PoisonError::into_inner).take(&views, wall_ms());
            tokio::select! {
                () = super::connection::told_to_stop(&mut stopping) => return,
                () = tokio::time::sleep(SAMPLE_EVERY) => {}
            }
        }
    }

    /// Lets a call in, or tells why not. The place is held while the call is under way.
    pub(super) fn admit(
        &self,
        lane: Lane,
        left: Option<Duration>,
    ) -> Result<SemaphorePermit<'_>, Problem> {
        let entered = self.admission.enter(&self.rooms, lane, left);
        entered.map_err(|reason| problems::shed(lane, reason))
    }

    /// A call for which there is no place.
    pub(super) fn full(&self, lane: Lane, what: &'static str) -> Problem {
        self.admission.turn_away(lane, Reason::Full);
        problems::door_full(what)
    }

    /// A place for a transfer of an admitted call. Whoever had to wait for it is judged again (CH-23).
    pub(super) async fn transfer(
        &self,
        lane: Lane,
        context: &Context,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let (queue, what) = match lane {
            Lane::Download => (&self.rooms.downloads, "downloads"),
            Lane::Settle => (&self.rooms.outputs, "outputs"),
            _ => (&self.rooms.uploads, "uploads"),
        };
        let seat = queue.enter(context.timeout).await;
        let Seat { place, waited } = seat.map_err(|_| self.full(lane, what))?;
        if let Some(waited) = waited {
            let left = context.left(lane).map(|left| left.saturating_sub(waited));
            let verdict = self.admission.judge_again(lane, left);
            verdict.map_err(|reason| problems::shed(lane, reason))?;
        }
        Ok(place)
    }

    /// The voters' middle clock, which log time follows: this node's own may be wrong by weeks (F-18).
    pub(super) async fn log_now_ms(&self) -> u64 {
        let ahead_ms = self.door.status().await.clock_offset_ms;
        wall_ms().saturating_add_signed(ahead_ms.saturating_neg())
    }

    /// Lets a download read bytes that are not in memory, or tells why not (CH-22).
    pub(super) fn admit_miss(&self) -> Result<(), Problem> {
        let verdict = self.admission.judge_miss();
        verdict.map_err(|reason| problems::shed(Lane::Download, reason))
    }

    /// How addresses of nodes begin.
    pub(super) fn scheme(&self) -> &'static str {
        if self.security.tls.is_some() { "https" } else { "http" }
    }

    /// Looks at the tokens now.
    pub(super) async fn refresh_tokens(&self) {
        let Some(gatekeeper) = &self.security.gatekeeper else { return };
        let read = Request::Read(Query::Tokens, Consistency::Stale);
        if let Answer::View { view: View::Tokens(tokens), .. } =
            self.door.call(read, QUEUES_PATIENCE, Routing::Forward).await
        {
            gatekeeper.learn(tokens);
        }
    }

    /// Looks at the tokens because a strange one came. Many that come at once share one look, and looks keep a
    /// distance, so that strangers cannot keep the node busy.
    pub(super) async fn refresh_tokens_for_strangers(&self) {
        let came = Instant::now();
        let mut refreshed = self.refreshed.lock().await;
        if let Some(before) = *refreshed {
            if before >= came {
                return;
            }
            tokio::time::sleep(STRANGE_EVERY.saturating_sub(before.elapsed())).await;
        }
        *refreshed = Some(Instant::now());
        self.refresh_tokens().await;
    }

    /// Keeps the tokens at hand until the door closes.
    pub(super) async fn watch_tokens(self: Arc<Self>) {
        let mut stopping = self.stopping.clone();
        loop {
            self.refresh_tokens().await;
            tokio::select! {
                () = super::connection::told_to_stop(&mut stopping) => return,
                () = tokio::time::sleep(REFRESH_EVERY) => {}
            }
        }
    }

    /// Keeps the quotas at hand until the door closes.
    pub(super) async fn watch_quotas(self: Arc<Self>) {
        let mut stopping = self.stopping.clone();
        loop {
            let query = Query::Namespaces { only_bounded: true };
            let read = Request::Read(query, Consistency::Stale);
            if let Answer::View { view: View::Namespaces(all), .. } =
                self.door.call(read, QUEUES_PATIENCE, Routing::Forward).await
            {
                self.quotas.learn(&all, Instant::now());
            }
            tokio::select! {
                () = super::connection::told_to_stop(&mut stopping) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// A random number for names of one request; nothing secret hangs on it.
    pub(super) fn draw(&self) -> u64 {
        let count = self.draws.fetch_add(1, Ordering::Relaxed);
        fastrand::Rng::with_seed(self.seed.wrapping_add(count)).u64(..)
    }
}

/// How a queue does.
pub(super) fn health(samples: &Mutex<Samples>, view: &QueueView) -> QueueHealth {
    let samples = samples.lock().unwrap_or_else(PoisonError::into_inner).of(view);
    judge(view, &samples, wall_ms())
}
