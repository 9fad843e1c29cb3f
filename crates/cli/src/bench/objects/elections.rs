//! Counts elections that nobody asked for, by every node's own events.
//!
//! The balancer spreads leaders a while after a cluster has started. That is a transfer, which costs a term and no
//! time without a leader, and it is not what a load does to a cluster; a leader that gives up because of its disk is.

use ikada_api::Client;
use ikada_api::v1::EventView;

use crate::failure::Failure;

/// Every node, and the newest of its events that was there before.
pub(super) struct Elections(Vec<(Client, u64)>);

impl Elections {
    /// Looks away from what has happened so far.
    pub(super) async fn from_now(urls: &[String]) -> Result<Elections, Failure> {
        let mut nodes = Vec::with_capacity(urls.len());
        for url in urls {
            let client = Client::new(std::slice::from_ref(url));
            let client = client.map_err(|error| Failure::failed(error.to_string()))?;
            let next = client.events(0).await?.next;
            nodes.push((client, next));
        }
        Ok(Elections(nodes))
    }

    /// How many there were since.
    pub(super) async fn count(&self) -> Result<u64, Failure> {
        let mut count = 0;
        for (client, since) in &self.0 {
            let events = client.events(*since).await?.events;
            count += events.iter().filter(|event| is_unasked(event)).count() as u64;
        }
        Ok(count)
    }
}

/// Somebody wanted to lead without having been asked to, or could not lead on.
fn is_unasked(event: &EventView) -> bool {
    let is_asked = event.reason == "leadership transferred";
    (event.role == "candidate" && !is_asked) || event.reason.starts_with("the disk stood still")
}
