//! Objects: one file per verb. Bodies are streamed both ways; names never become paths.

mod delete;
mod download;
mod fold;
mod list;
mod name;
mod outgoing;
mod precondition;
mod put;
mod range;
mod show;
mod upload;
mod writer;

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::routes::Operation;

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::logs;
use crate::http::request::Context;
use crate::http::uploads;

pub(super) use delete::delete;
pub(super) use download::download;
pub(super) use fold::{Folded, Wish, fold};
pub(super) use list::{check_prefix, limit as page_limit, list, list_buckets, some_limit};
pub(super) use name::check_bucket;
pub(super) use precondition::{condition, tags};
pub(super) use put::{
    Announced, Made, commit, commit_made, read_headers, show_stored, take_in, write_one,
};
pub(super) use show::{describe, iso_date};
pub(super) use upload::confirm;

/// Answers a request whose headers or streamed body matter; none for every other operation.
pub(super) async fn answer<D, B>(
    app: &App<D>,
    operation: Operation,
    context: &Context,
    parts: &Parts,
    body: B,
) -> Option<Result<Reply, Stop>>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match operation {
        Operation::PutObject => Some(put::put(app, context, parts, body).await),
        Operation::GetObject => Some(download::download(app, context, parts).await),
        Operation::DeleteObject => Some(delete::delete(app, context, parts).await),
        Operation::TaskLogs => Some(logs::of_task(app, context, parts).await),
        Operation::Upload => Some(upload::upload(app, context, parts, body).await),
        Operation::PutPart => Some(uploads::put_part(app, context, parts, body).await),
        _ => None,
    }
}
