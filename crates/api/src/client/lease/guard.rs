//! A holding that keeps itself alive.
//!
//! Promise: [`LeaseGuard::lost`] returns before the cluster can have given the lease to another, as far as clocks run
//! alike: time is counted from before each renewal was sent, by this process's monotonic clock, minus a margin. A process
//! that is stopped as a whole cannot promise that; the fence is for those who must be sure.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::{Client, Error};
use crate::v1::{AcquireLease, LeaseState, LeaseTask, Number, ReleaseLease, RenewLease};

/// One call waits this long at most; the place in line is kept from call to call.
const WAIT_STEP: Duration = Duration::from_secs(30);

/// How a lease is taken.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// Who holds it. Must be this holder's alone.
    pub holder: String,
    /// How long it is held unless renewed.
    pub ttl: Duration,
    /// How long to wait for the turn; none: for ever; zero: do not stand in line.
    pub wait: Option<Duration>,
    /// The attempt of a task with which it ends.
    pub task: Option<LeaseTask>,
}

/// A lease that this process holds. Dropping it stops the renewals, so that the ttl frees it; [`LeaseGuard::release`]
/// frees it at once.
#[derive(Debug)]
pub struct LeaseGuard {
    client: Client,
    name: String,
    holder: String,
    fence: Number,
    lost: watch::Receiver<bool>,
    keeper: JoinHandle<()>,
}

impl Client {
    /// Takes a lease and keeps it until the guard is dropped. Refused with `lease_held` if the wait is over first.
    pub async fn hold_lease(&self, name: &str, options: LeaseOptions) -> Result<LeaseGuard, Error> {
        let until = options.wait.map(|wait| Instant::now() + wait);
        let ttl_ms = u32::try_from(options.ttl.as_millis()).unwrap_or(u32::MAX);
        let mut wish = AcquireLease {
            holder: options.holder.clone(),
            ttl_ms: Some(ttl_ms),
            wait_ms: 0,
            task: options.task,
        };
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let step = left.map_or(WAIT_STEP, |left| left.min(WAIT_STEP));
            wish.wait_ms = step.as_millis() as u64;
            let sent = Instant::now();
            let answer = self.acquire_lease(name, &wish).await?;
            if let (LeaseState::Held, Some(fence)) = (answer.state, answer.fence) {
                let guard = LeaseGuard::keep(self, name, options.holder, fence, options.ttl, sent);
                return guard.await;
            }
            if left == Some(Duration::ZERO) {
                // The last word was a place in line; it is not needed any more.
                let release = ReleaseLease { holder: options.holder.clone(), fence: None };
                let _ = self.release_lease(name, &release).await;
            }
        }
    }
}

impl LeaseGuard {
    async fn keep(
        client: &Client,
        name: &str,
        holder: String,
        fence: Number,
        ttl: Duration,
        mut sent: Instant,
    ) -> Result<LeaseGuard, Error> {
        let renewal = RenewLease { holder: holder.clone(), fence };
        if sent.elapsed() > ttl / 3 {
            // It was granted during a wait: nobody here knows when.
            sent = Instant::now();
            client.renew_lease(name, &renewal).await?;
        }
        let (told, lost) = watch::channel(false);
        let keeping = keep_alive(client.clone(), name.to_owned(), renewal, ttl, sent);
        let keeper = tokio::spawn(async move {
            keeping.await;
            // Nobody may listen any more.
            let _ = told.send(true);
        });
        let (client, name) = (client.clone(), name.to_owned());
        Ok(LeaseGuard { client, name, holder, fence, lost, keeper })
    }

    /// Token of the holding: hand it to whatever the lease protects.
    pub fn fence(&self) -> Number {
        self.fence
    }

    /// Whether the lease is still ours, as far as this process knows.
    pub fn is_held(&self) -> bool {
        !*self.lost.borrow()
    }

    /// Returns when the lease is lost, or can no longer be trusted to be ours.
    pub async fn lost(&mut self) {
        // An error means that the keeper is gone, and with it the lease.
        let _ = self.lost.wait_for(|lost| *lost).await;
    }

    /// Gives the lease back at once.
    pub async fn release(self) -> Result<(), Error> {
        self.keeper.abort();
        let (holder, fence) = (self.holder.clone(), Some(self.fence));
        self.client.release_lease(&self.name, &ReleaseLease { holder, fence }).await.map(drop)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Renews until the lease is lost or its time is over; the time counts from before each request was sent.
async fn keep_alive(
    client: Client,
    name: String,
    renewal: RenewLease,
    ttl: Duration,
    mut sent: Instant,
) {
    let margin = ttl / 10;
    loop {
        let until = sent + ttl - margin;
        tokio::time::sleep_until((sent + ttl / 3).min(until)).await;
        let sending = Instant::now();
        let renewed = tokio::time::timeout_at(until, client.renew_lease(&name, &renewal)).await;
        match renewed {
            Ok(Ok(_)) => sent = sending,
            Ok(Err(Error::Refused(_))) | Err(_) => return,
            Ok(Err(_)) => {}
        }
        if Instant::now() >= until && sent != sending {
            return;
        }
    }
}
