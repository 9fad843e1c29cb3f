//! `GET /v1/jobs/{id}/result`: what a job came to, once it is done; before that its status and nothing else (B4-8).

use ikada_api::state::{BUCKET_JOBS, BucketName, Job, JobState};
use ikada_api::v1::{Body, JobResult, ObjectInfo};
use ikada_replica::call::{Query, View};

use super::show::look;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::describe;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

/// Most outputs told; the others are in the bucket `jobs` under the job's id.
const OUTPUTS_TOLD_MAX: usize = 1_000;

pub(in crate::http) async fn result<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let (seen, job) = look(app, context).await?;
    let mut shown = JobResult {
        id: job.id().to_string(),
        status: job.status().as_str().to_owned(),
        reason: job.reason().map(|reason| String::from_utf8_lossy(reason).into_owned()),
        task: None,
        result: None,
        result_base64: None,
        outputs: Vec::new(),
    };
    if job.state() == JobState::Done {
        if let Some((task, bytes)) = job.result() {
            let body = Body::of(bytes);
            shown.task = Some(task.to_string());
            (shown.result, shown.result_base64) = (body.json, body.base64);
        }
        shown.outputs = outputs(app, context, &job).await?;
    }
    show_view(context, &seen, &shown)
}

/// What the tasks of the last stages brought.
async fn outputs<D: Door>(
    app: &App<D>,
    context: &Context,
    job: &Job,
) -> Result<Vec<ObjectInfo>, Stop> {
    let bucket = BucketName::parse(BUCKET_JOBS).map_err(|_| problems::internal())?;
    let mut outputs = Vec::new();
    for (place, stage) in job.spec().stages.iter().enumerate() {
        if !job.spec().is_final(place) || outputs.len() >= OUTPUTS_TOLD_MAX {
            continue;
        }
        let query = Query::Objects {
            namespace: context.namespace.clone(),
            bucket: bucket.clone(),
            prefix: format!("{}/{}/", job.id(), stage.name),
            after: None,
            limit: OUTPUTS_TOLD_MAX - outputs.len(),
        };
        let seen = read(app, context, query).await?;
        let View::Objects(page) = &seen.view else {
            return Err(mismatch("job result"));
        };
        let newest = page.objects.iter().filter_map(|object| Some((object, object.newest()?)));
        outputs.extend(newest.map(|(object, version)| describe(object, version)));
    }
    Ok(outputs)
}
