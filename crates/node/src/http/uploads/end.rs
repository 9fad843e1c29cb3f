//! `DELETE /v1/uploads/{upload}`: gives an upload up. Whoever hears that it is gone need not look.

use hyper::StatusCode;
use ikada_api::v1::UploadEnded;

use super::keep::{forget, open};
use super::upload_of;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) async fn end<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let upload = upload_of(context)?;
    let begun = open(app, context, upload).await?;
    forget(app, context, &begun.parts, upload).await?;
    let parts = begun.parts.len() as u32;
    show_document(context, StatusCode::OK, &UploadEnded { upload: upload.to_owned(), parts })
}
