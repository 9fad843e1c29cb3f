//! Inputs that name an object without its version get the newest one now: what is missing is told before anything
//! begins, and a job reads the same bytes whatever is written meanwhile (B4-31). A task of its own may be there before its
//! inputs are; those are what they are when it runs.

use ikada_api::Problem;
use ikada_api::state::{
    Command, Input, InputSource, JobSpec, ObjectKey, Order, SharedWork, StageSource, Work,
    is_published,
};
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::Seen;

pub(super) async fn pin_inputs<D: Door>(
    app: &App<D>,
    context: &Context,
    spec: &mut JobSpec,
) -> Result<(), Stop> {
    for stage in &mut spec.stages {
        let name = stage.name.to_string();
        if let StageSource::Inputs(inputs) = &mut stage.source {
            pin(app, context, inputs, (&format!("{name}."), true)).await?;
        }
    }
    Ok(())
}

/// The same for a task of its own. If its result may be reused its inputs must be known by their content, else what is not
/// there is left as it is.
pub(in crate::http) async fn pin_task<D: Door>(
    app: &App<D>,
    context: &Context,
    order: &mut Order,
) -> Result<(), Stop> {
    let Command::Enqueue(enqueue) = &mut order.command else {
        return Ok(());
    };
    let work = enqueue.options.as_mut().and_then(|options| options.work.as_mut());
    let Some(shared) = work.filter(|work| work.inputs.iter().any(is_open)) else {
        return Ok(());
    };
    let mut work = Work::clone(shared);
    let strict = work.reuses();
    pin(app, context, &mut work.inputs, ("", strict)).await?;
    *shared = SharedWork::from(work);
    Ok(())
}

/// Whether it names an object, but not exactly.
fn is_open(input: &Input) -> bool {
    match &input.source {
        InputSource::Object { version, digest, .. } => version.is_none() || digest.is_none(),
        InputSource::Url { .. } | InputSource::Text(_) => false,
    }
}

/// Pins inputs, which are told of as `of`. One that is missing is refused, or left as it is.
async fn pin<D: Door>(
    app: &App<D>,
    context: &Context,
    inputs: &mut [Input],
    (of, strict): (&str, bool),
) -> Result<(), Stop> {
    for (place, input) in inputs.iter_mut().enumerate() {
        if !is_open(input) {
            continue;
        }
        let InputSource::Object { bucket, key, version, digest, .. } = &mut input.source else {
            continue;
        };
        let object = (context.namespace.clone(), bucket.clone(), key.clone());
        let Some(found) = find(app, context, object, *version).await? else {
            if !strict {
                continue;
            }
            let outputs = if is_published(bucket) { "; outputs go with their job" } else { "" };
            let detail = format!("there is no object {bucket}/{key}{outputs}");
            let problem = Problem::new(404, "object_not_found", "no such input", detail);
            return Err(problem.with_field(format!("{of}inputs[{place}]")).into());
        };
        *version = Some(found.0);
        digest.get_or_insert(found.1);
    }
    Ok(())
}

/// Number and digest of a version of an object, the newest if none is named.
async fn find<D: Door>(
    app: &App<D>,
    context: &Context,
    object: ObjectKey,
    version: Option<u64>,
) -> Result<Option<(u64, ikada_api::state::Digest)>, Stop> {
    let read = Request::Read(Query::Object(object), Consistency::Linearizable);
    let seen = Seen::of(call(app, context, read, Routing::Forward).await?);
    match seen.map(|seen| seen.view) {
        Some(View::Object(object)) => {
            let object = object.as_ref().and_then(|object| object.version(version));
            Ok(object.map(|version| (version.version, version.digest)))
        }
        _ => Err(mismatch("pin input")),
    }
}
