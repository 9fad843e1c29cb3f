//! Inputs that name an object without its version get the newest one now: what is missing is told before anything
//! begins, and a job reads the same bytes whatever is written meanwhile (B4-31). Inputs of a task of its own are what they
//! are when it runs, unless its result may be reused. What is pinned does not make it another body: sent again after somebody
//! wrote its inputs, it is known by what was asked for.

use ikada_api::state::{
    Command, Input, InputSource, JobSpec, ObjectKey, Order, SharedWork, StageSource, Work,
    is_published,
};
use ikada_api::{Problem, abreast};
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::Seen;

/// Inputs that are looked up at one time: a job may name thousands, and each costs a round among the nodes.
const PIN_ABREAST: usize = 32;

pub(super) async fn pin_inputs<D: Door>(
    app: &App<D>,
    context: &Context,
    spec: &mut JobSpec,
) -> Result<(), Stop> {
    for stage in &mut spec.stages {
        let name = stage.name.to_string();
        if let StageSource::Inputs(inputs) = &mut stage.source {
            pin(app, context, inputs, &format!("{name}.")).await?;
        }
    }
    Ok(())
}

/// The same for a task of its own whose result may be reused: its inputs must be known by their content.
pub(in crate::http) async fn pin_task<D: Door>(
    app: &App<D>,
    context: &Context,
    order: &mut Order,
) -> Result<(), Stop> {
    let Command::Enqueue(enqueue) = &mut order.command else {
        return Ok(());
    };
    let work = enqueue.options.as_ref().and_then(|options| options.work.as_ref());
    let Some(shared) = work.filter(|work| work.reuses()) else {
        return Ok(());
    };
    let mut work = Work::clone(shared);
    pin(app, context, &mut work.inputs, "").await?;
    enqueue.pin_work(SharedWork::from(work));
    Ok(())
}

/// Pins inputs, which are told of as `of`.
async fn pin<D: Door>(
    app: &App<D>,
    context: &Context,
    inputs: &mut [Input],
    of: &str,
) -> Result<(), Stop> {
    let pin = async |(place, input): (usize, &mut Input)| -> Result<(), Stop> {
        let InputSource::Object { bucket, key, version, digest, .. } = &mut input.source else {
            return Ok(());
        };
        if version.is_some() && digest.is_some() {
            return Ok(());
        }
        let object = (context.namespace.clone(), bucket.clone(), key.clone());
        let Some(found) = find(app, context, object, *version).await? else {
            let outputs = if is_published(bucket) { "; outputs go with their job" } else { "" };
            let detail = format!("there is no object {bucket}/{key}{outputs}");
            let problem = Problem::new(404, "object_not_found", "no such input", detail);
            return Err(problem.with_field(format!("{of}inputs[{place}]")).into());
        };
        *version = Some(found.0);
        digest.get_or_insert(found.1);
        Ok(())
    };
    abreast(PIN_ABREAST, inputs.iter_mut().enumerate().map(pin)).await.map(|_: Vec<()>| ())
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
