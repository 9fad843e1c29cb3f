//! Leases: take, keep, give back, look. [`LeaseGuard`] does all that for one holding.

mod guard;

use std::time::Duration;

use hyper::Method;

pub use guard::{LeaseGuard, LeaseOptions};

use super::send::Ask;
use super::url::{escape, unique_key};
use super::{Client, Error};
use crate::v1::{
    AcquireLease, LeaseAnswer, LeaseInfo, LeasePage, LeaseReleased, Number, ReleaseLease,
    RenewLease,
};

impl Client {
    /// Takes a lease, waiting in line as long as the wish says.
    pub async fn acquire_lease(
        &self,
        name: &str,
        wish: &AcquireLease,
    ) -> Result<LeaseAnswer, Error> {
        let mut ask = Ask::json(Method::POST, lease_path(name, "/acquire"), wish, None)?;
        ask.hold = Duration::from_millis(wish.wait_ms);
        self.ask(&ask).await
    }

    /// Proves the life of a holding.
    pub async fn renew_lease(
        &self,
        name: &str,
        renewal: &RenewLease,
    ) -> Result<LeaseAnswer, Error> {
        self.ask(&Ask::json(Method::POST, lease_path(name, "/renew"), renewal, None)?).await
    }

    /// Gives a lease back, or a place in its line.
    pub async fn release_lease(
        &self,
        name: &str,
        release: &ReleaseLease,
    ) -> Result<LeaseReleased, Error> {
        let path = lease_path(name, "/release");
        self.ask(&Ask::json(Method::POST, path, release, Some(unique_key()))?).await
    }

    /// One lease.
    pub async fn lease(&self, name: &str) -> Result<LeaseInfo, Error> {
        self.ask(&Ask::get(lease_path(name, ""))).await
    }

    /// Waits until a lease has another holder than the one seen (none: nobody), or the time is over.
    pub async fn watch_lease(
        &self,
        name: &str,
        seen: Option<Number>,
        wait: Duration,
    ) -> Result<LeaseInfo, Error> {
        let (seen, wait_ms) = (seen.unwrap_or_default(), wait.as_millis());
        let path = lease_path(name, &format!("?wait_ms={wait_ms}&seen={seen}"));
        let mut ask = Ask::get(path);
        ask.hold = wait;
        self.ask(&ask).await
    }

    /// A page of leases that somebody holds.
    pub async fn leases(&self, after: Option<&str>) -> Result<LeasePage, Error> {
        let after = after.map(|after| format!("?after={}", escape(after)));
        self.ask(&Ask::get(format!("/v1/leases{}", after.unwrap_or_default()))).await
    }
}

fn lease_path(name: &str, rest: &str) -> String {
    format!("/v1/leases/{}{rest}", escape(name))
}
