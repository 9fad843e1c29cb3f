//! `GET /v1/uploads/{upload}` and `GET /v1/uploads`: what was begun, and what has arrived of it. A line of the list costs a
//! look at its upload and a piece, so a page has few of them.

use hyper::StatusCode;
use ikada_api::v1::{UploadPage, UploadPart, UploadView};

use super::keep::{Begun, look, number_of, open, place};
use super::upload_of;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::{Wish, fold};
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::show_view;

/// Most uploads on a page.
const LIST_MAX: usize = 100;

/// How an upload is shown.
pub(super) fn describe(upload: &str, begun: &Begun) -> UploadView {
    let shown = begun.parts.iter().filter_map(|part| {
        let version = part.newest()?;
        let digest = version.digest.to_string();
        Some(UploadPart { part: number_of(part)?, size: version.size, digest })
    });
    UploadView {
        upload: upload.to_owned(),
        bucket: begun.target.0.clone(),
        key: begun.target.1.clone(),
        content_type: begun.content_type.clone(),
        begun_ms: begun.begun_ms,
        parts: shown.collect(),
    }
}

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let upload = upload_of(context)?;
    let begun = open(app, context, upload).await?;
    show_document(context, StatusCode::OK, &describe(upload, &begun))
}

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let (_, bucket, _) = place(context, "x")?;
    let after = context.query("after").map(str::to_owned);
    let rule = format!("must be 1 to {LIST_MAX}");
    let max = context.query_as("limit", &rule)?.unwrap_or(LIST_MAX);
    if !(1..=LIST_MAX).contains(&max) {
        return Err(problems::bad_parameter("limit", rule).into());
    }
    let wish = Wish { bucket, prefix: "", delimiter: Some("/"), max, after };
    let found = fold(app, context, &wish).await?;
    let mut uploads = Vec::new();
    for prefix in &found.prefixes {
        let upload = prefix.trim_end_matches('/');
        match look(app, context, upload).await {
            Ok(begun) => uploads.push(describe(upload, &begun)),
            // It ended meanwhile, these are parts that came after its end, or its name cannot be read now: the others can.
            Err(Stop::Problem(problem))
                if matches!(&*problem.code, "upload_not_found" | "piece_missing") => {}
            Err(stop) => return Err(stop),
        }
    }
    let seen = found.seen.ok_or_else(|| mismatch("list uploads"))?;
    show_view(context, &seen, &UploadPage { uploads, next: found.next })
}
