//! `GET /v1/jobs`.

use ikada_api::convert::{parse_name, show_job};
use ikada_api::state::JobId;
use ikada_api::v1::JobPage;
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::page_limit;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let after = context.query("after").map(|text| parse_name("after", text, JobId::parse));
    let after = after.transpose().map_err(|error| problems::bad_field(&error))?;
    let limit = page_limit(app, context)?;
    let query = Query::Jobs { namespace: context.namespace.clone(), after, limit };
    let seen = read(app, context, query).await?;
    let View::Jobs(page) = &seen.view else {
        return Err(mismatch("list jobs"));
    };
    let jobs = page.jobs.iter().map(|job| show_job(job)).collect();
    let next = page.next.as_ref().map(ToString::to_string);
    show_view(context, &seen, &JobPage { jobs, next })
}
