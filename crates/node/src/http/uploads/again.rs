//! What a `finish` hears that comes again when its upload has gone: the first answer got lost (CH-1).
//!
//! Promise: it is answered from what was committed under its request id, so nothing is written a second time, and whoever
//! repeats it learns what became of the first.

use std::sync::Arc;

use ikada_api::state::{Object, ObjectKey, ObjectVersion, Outcome, RefusalCode, RequestId};
use ikada_replica::call::{Answer, Consistency, Query, Request, RequestFate, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, read};

/// A version that was written before.
pub(in crate::http) struct Written {
    pub(in crate::http) version: u64,
    /// Whether it was new then.
    pub(in crate::http) fresh: bool,
}

/// What was written under a request id; none if nothing was. What was refused under it is refused again.
pub(in crate::http) async fn written<D: Door>(
    app: &App<D>,
    context: &Context,
    request: &RequestId,
) -> Result<Option<Written>, Stop> {
    let query = Query::Request(context.namespace.clone(), request.clone(), 0);
    let read = Request::Read(query, Consistency::Linearizable);
    let answer = call(app, context, read, Routing::Forward).await?;
    let Answer::View { view: View::Request(fate), .. } = answer else {
        return Err(mismatch("finish upload"));
    };
    let RequestFate::Committed(recorded) = fate else { return Ok(None) };
    match recorded.outcome {
        Outcome::ObjectPut { version, fresh } => Ok(Some(Written { version, fresh })),
        Outcome::Refused { code } => Err(problems::refusal(code).into()),
        _ => Err(problems::refusal(RefusalCode::IdempotencyConflict).into()),
    }
}

/// A version of an object, if it is kept, and how it was seen.
pub(in crate::http) async fn version_of<D: Door>(
    app: &App<D>,
    context: &Context,
    key: ObjectKey,
    version: u64,
) -> Result<Option<(Arc<Object>, ObjectVersion, Seen)>, Stop> {
    let seen = read(app, context, Query::Object(key)).await?;
    let View::Object(object) = &seen.view else { return Err(mismatch("finish upload")) };
    let found = object
        .as_ref()
        .and_then(|object| Some((object.clone(), object.version(Some(version))?.clone())));
    Ok(found.map(|(object, version)| (object, version, seen)))
}
