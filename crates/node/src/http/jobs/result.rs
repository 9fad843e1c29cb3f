//! `GET /v1/jobs/{id}/result`: what a job came to, once it is done; before that its status and nothing else (B4-8).

use ikada_api::state::{BUCKET_JOBS, BucketName, Job, JobState};
use ikada_api::v1::{JobResult, ObjectInfo};
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

/// Most outputs on a page, and how many there are on one when nothing is said.
const OUTPUTS_PAGE_MAX: usize = 1_000;

pub(in crate::http) async fn result<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let rule = format!("must be 1 to {OUTPUTS_PAGE_MAX}");
    let limit: usize = context.query_as("limit", &rule)?.unwrap_or(OUTPUTS_PAGE_MAX);
    if !(1..=OUTPUTS_PAGE_MAX).contains(&limit) {
        return Err(problems::bad_parameter("limit", rule).into());
    }
    let (seen, job) = look(app, context).await?;
    let mut shown = JobResult {
        id: job.id().to_string(),
        status: job.status().as_str().to_owned(),
        reason: job.reason().map(|reason| String::from_utf8_lossy(reason).into_owned()),
        task: None,
        result: None,
        result_base64: None,
        result_bytes: None,
        outputs: Vec::new(),
        next: None,
    };
    if job.state() == JobState::Done {
        if let Some((task, bytes)) = job.result() {
            let body = context.form_wanted.show(bytes);
            shown.task = Some(task.to_string());
            (shown.result, shown.result_base64) = (body.json, body.base64);
            shown.result_bytes = body.bytes;
        }
        (shown.outputs, shown.next) = outputs(app, context, &job, limit).await?;
    }
    show_view(context, &seen, &shown)
}

/// A page of what the tasks of the last stages brought, and where the next page begins: the key of the last one.
async fn outputs<D: Door>(
    app: &App<D>,
    context: &Context,
    job: &Job,
    limit: usize,
) -> Result<(Vec<ObjectInfo>, Option<String>), Stop> {
    let bucket = BucketName::parse(BUCKET_JOBS).map_err(|_| problems::internal())?;
    let (first, mut after) = begin(context, job)?;
    let mut outputs: Vec<ObjectInfo> = Vec::new();
    for (place, stage) in job.spec().stages.iter().enumerate().skip(first) {
        if !job.spec().is_final(place) {
            continue;
        }
        if outputs.len() >= limit {
            let last = outputs.last().map(|output| output.key.clone());
            return Ok((outputs, last));
        }
        let query = Query::Objects {
            namespace: context.namespace.clone(),
            bucket: bucket.clone(),
            prefix: prefix(job, stage.name.as_str()),
            after: after.take(),
            limit: limit - outputs.len(),
        };
        let seen = read(app, context, query).await?;
        let View::Objects(page) = &seen.view else {
            return Err(mismatch("job result"));
        };
        let newest = page.objects.iter().filter_map(|object| Some((object, object.newest()?)));
        outputs.extend(newest.map(|(object, version)| describe(object, version)));
        if let Some(next) = &page.next {
            return Ok((outputs, Some(next.to_string())));
        }
    }
    Ok((outputs, None))
}

/// What the keys of a stage's outputs begin with.
fn prefix(job: &Job, stage: &str) -> String {
    format!("{}/{stage}/", job.id())
}

/// Where a page begins: a stage, and the last key of the page before if it is one of this stage.
fn begin(context: &Context, job: &Job) -> Result<(usize, Option<String>), Stop> {
    let Some(after) = context.query("after") else {
        return Ok((0, None));
    };
    let mut stages = job.spec().stages.iter();
    let stage = stages.position(|stage| after.starts_with(&prefix(job, stage.name.as_str())));
    let stage = stage.ok_or_else(|| {
        problems::bad_parameter("after", "must be the next of a page of this job's result")
    })?;
    Ok((stage, Some(after.to_owned())))
}
