//! `GET /v1/uploads/{upload}` and `GET /v1/uploads`: what was begun, and what has arrived of it.

use hyper::StatusCode;
use ikada_api::v1::{UploadPage, UploadPart, UploadView};

use super::keep::{Begun, look, number_of, open, place};
use super::upload_of;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::{Wish, fold, page_limit};
use crate::http::request::Context;
use crate::http::requests::show_view;

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
    let (after, max) = (context.query("after").map(str::to_owned), page_limit(app, context)?);
    let wish = Wish { bucket, prefix: "", delimiter: Some("/"), max, after };
    let found = fold(app, context, &wish).await?;
    let mut uploads = Vec::new();
    for prefix in &found.prefixes {
        let upload = prefix.trim_end_matches('/');
        match look(app, context, upload).await {
            Ok(begun) => uploads.push(describe(upload, &begun)),
            // It ended meanwhile, or these are parts that came after its end.
            Err(Stop::Problem(problem)) if problem.code == "upload_not_found" => {}
            Err(stop) => return Err(stop),
        }
    }
    let seen = found.seen.ok_or_else(|| mismatch("list uploads"))?;
    show_view(context, &seen, &UploadPage { uploads, next: found.next })
}
