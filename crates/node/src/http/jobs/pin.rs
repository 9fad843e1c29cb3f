//! Inputs that name an object without its version get the newest one now: what is missing is told before anything
//! begins, and a job reads the same bytes whatever is written meanwhile (B4-31).

use ikada_api::Problem;
use ikada_api::state::{InputSource, JobSpec, ObjectKey, StageSource, is_published};
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
        let StageSource::Inputs(inputs) = &mut stage.source else {
            continue;
        };
        for (place, input) in inputs.iter_mut().enumerate() {
            if let InputSource::Object { bucket, key, version: version @ None, digest, .. } =
                &mut input.source
            {
                let object = (context.namespace.clone(), bucket.clone(), key.clone());
                let Some(newest) = newest(app, context, object).await? else {
                    let outputs =
                        if is_published(bucket) { "; outputs go with their job" } else { "" };
                    let detail = format!("there is no object {bucket}/{key}{outputs}");
                    let problem = Problem::new(404, "object_not_found", "no such input", detail);
                    return Err(problem.with_field(format!("{name}.inputs[{place}]")).into());
                };
                *version = Some(newest.0);
                digest.get_or_insert(newest.1);
            }
        }
    }
    Ok(())
}

/// Number and digest of an object's newest version.
async fn newest<D: Door>(
    app: &App<D>,
    context: &Context,
    object: ObjectKey,
) -> Result<Option<(u64, ikada_api::state::Digest)>, Stop> {
    let read = Request::Read(Query::Object(object), Consistency::Linearizable);
    let seen = Seen::of(call(app, context, read, Routing::Forward).await?);
    match seen.map(|seen| seen.view) {
        Some(View::Object(object)) => {
            let object = object.as_ref().and_then(|object| object.newest());
            Ok(object.map(|version| (version.version, version.digest)))
        }
        _ => Err(mismatch("pin input")),
    }
}
