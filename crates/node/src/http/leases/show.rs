//! `GET /v1/leases/{name}`: who holds a lease; with `wait_ms`, as soon as that is another than the caller has seen.

use ikada_api::convert::{lease_name, show_lease};
use ikada_api::state::{Fence, Lease};
use ikada_replica::call::{LeaseWatch, Query, Request, View};

use super::fitting_wait_ms;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let text = &context.names[0];
    let name = lease_name(text).map_err(|error| problems::bad_field(&error))?;
    let wait_ms: Option<u64> = context.query_as("wait_ms", "must be a number of ms")?;
    let fence: Option<u64> = context.query_as("seen", "must be a fence, or 0")?;
    let key = (context.namespace.clone(), name);
    let mut seen = read(app, context, Query::Lease(key.clone())).await?;
    let known = fence.filter(|fence| *fence > 0).map(Fence);
    let wait_ms = fitting_wait_ms(context, wait_ms.unwrap_or(0));
    if wait_ms > 0 && held(&seen)?.map(|lease| lease.holding.fence) == known {
        // What was read just now is in this node's state, so nothing can be missed in between.
        let watch = LeaseWatch { key, seen: known, wait_ms };
        let answer = call(app, context, Request::WatchLease(watch), context.routing).await?;
        seen = Seen::of(answer).ok_or_else(|| mismatch("watch lease"))?;
    }
    let shown = show_lease(text, held(&seen)?);
    show_view(context, &seen, &shown)
}

fn held(seen: &Seen) -> Result<Option<&Lease>, Stop> {
    match &seen.view {
        View::Lease(lease) => Ok(lease.as_deref()),
        _ => Err(mismatch("show lease")),
    }
}
