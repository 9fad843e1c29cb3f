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
                let release =
                    ReleaseLease { holder: options.holder.clone(), ..ReleaseLease::default() };
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
        let (caller, lease) = (client.clone(), name.to_owned());
        let renew = move || {
            let (client, lease, renewal) = (caller.clone(), lease.clone(), renewal.clone());
            async move { client.renew_lease(&lease, &renewal).await.map(drop) }
        };
        let keeping = keep_alive(Trust { ttl, sent }, renew);
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
        let release = ReleaseLease { holder, fence, force: false };
        self.client.release_lease(&self.name, &release).await.map(drop)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// How long a holding is believed in: its ttl from before the last call that was answered with it, less a margin.
#[derive(Debug, Clone, Copy)]
struct Trust {
    ttl: Duration,
    /// When that call was sent.
    sent: Instant,
}

impl Trust {
    /// The cluster cannot have given the lease to another before this.
    fn until(&self) -> Instant {
        self.sent + self.ttl - self.ttl / 10
    }

    /// When to renew.
    fn renew_at(&self) -> Instant {
        self.sent + self.ttl / 3
    }

    /// What a renewal that was sent then comes to, answered or not by now: whether there is still a holding.
    fn after(&mut self, sending: Instant, renewed: &Result<(), Error>, now: Instant) -> bool {
        match renewed {
            Ok(()) => self.sent = sending,
            Err(Error::Refused(_)) => return false,
            // Nobody knows: the time that is left counts.
            Err(_) => {}
        }
        now < self.until()
    }
}

/// Renews until the lease is lost or its time is over.
async fn keep_alive<F>(mut trust: Trust, renew: impl Fn() -> F)
where
    F: Future<Output = Result<(), Error>>,
{
    loop {
        tokio::time::sleep_until(trust.renew_at()).await;
        let sending = Instant::now();
        let Ok(renewed) = tokio::time::timeout_at(trust.until(), renew()).await else { return };
        if !trust.after(sending, &renewed, Instant::now()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::problem::Problem;

    const TTL: Duration = Duration::from_secs(10);

    fn trust(sent: Instant) -> Trust {
        Trust { ttl: TTL, sent }
    }

    fn refused() -> Result<(), Error> {
        Err(Error::Refused(Box::new(Problem::new(409, "lease_lost", "lost", "it is another's"))))
    }

    #[test]
    fn ls_6_a_renewal_counts_from_before_it_was_sent() {
        let began = Instant::now();
        let mut held = trust(began);
        assert_eq!(held.until(), began + Duration::from_secs(9), "a margin before the ttl");
        assert!(held.renew_at() < began + TTL / 2, "in time for a second try");
        let (sending, answered) = (began + TTL / 3, began + Duration::from_secs(8));
        assert!(held.after(sending, &Ok(()), answered));
        assert_eq!(held.until(), sending + Duration::from_secs(9), "not from its answer");
    }

    #[test]
    fn ls_6_a_renewal_that_came_to_nothing_changes_nothing_and_one_that_is_refused_ends_it() {
        let began = Instant::now();
        let mut held = trust(began);
        let unanswered = || Err(Error::Unavailable { detail: "away".to_owned(), code: None });
        let soon = began + Duration::from_secs(4);
        assert!(held.after(soon, &unanswered(), soon));
        assert_eq!(held.until(), began + Duration::from_secs(9));
        let late = held.until();
        assert!(!held.after(late, &unanswered(), late), "its time is over");
        let mut held = trust(began);
        assert!(!held.after(soon, &refused(), soon), "it is another's");
        // An answer that comes when even the renewed time is over, as to a process that was stopped, is worth nothing.
        let mut held = trust(began);
        assert!(!held.after(soon, &Ok(()), soon + TTL), "it slept over its end");
    }

    #[tokio::test]
    async fn ls_6_a_keeper_whose_cluster_never_answers_comes_to_its_end() {
        let ttl = Duration::from_millis(300);
        let sent = Instant::now();
        keep_alive(Trust { ttl, sent }, std::future::pending).await;
        assert!(sent.elapsed() >= ttl / 3, "it tried");
        let count = Cell::new(0);
        let renew = || {
            count.set(count.get() + 1);
            std::future::ready(if count.get() < 3 { Ok(()) } else { refused() })
        };
        keep_alive(Trust { ttl, sent: Instant::now() }, renew).await;
        assert_eq!(count.get(), 3, "it goes on until it is refused");
    }
}
