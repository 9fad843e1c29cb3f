//! `POST /v1/uploads`: takes bytes in that have no name yet. A completion names them as outputs (A4); bytes that nothing
//! names are collected after the grace time.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::Problem;
use ikada_api::state::{Command, Digest, Order};
use ikada_api::v1::UploadInfo;

use super::put::{read_headers, take_in};
use crate::admission::Lane;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(super) async fn upload<D, B>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
    body: B,
) -> Result<Reply, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let announced = read_headers(parts)?;
    let _place = app.transfer(Lane::Settle, context).await?;
    let content = take_in(app, body).await?;
    context.subject.is(|| content.digest.to_string());
    if announced.digest.is_some_and(|digest| digest != content.digest) {
        return Err(problems::wrong_digest(&content.digest.to_string()).into());
    }
    let stored = UploadInfo {
        size: content.size,
        digest: content.digest.to_string(),
        chunks: content.chunks.iter().map(ToString::to_string).collect(),
    };
    show_document(context, StatusCode::CREATED, &stored)
}

/// Has a majority say that it has the bytes of all outputs, or of the checkpoint, that an order names, and keeps them. An order without
/// outputs is good at once.
pub(in crate::http) async fn confirm<D: Door>(app: &App<D>, order: &Order) -> Result<(), Problem> {
    let mut pieces: Vec<Digest> = match &order.command {
        Command::Complete(complete) => {
            complete.outputs.iter().flat_map(|output| output.chunks.iter()).copied().collect()
        }
        Command::Checkpoint(checkpoint) => checkpoint.chunks.to_vec(),
        _ => return Ok(()),
    };
    pieces.sort_unstable();
    pieces.dedup();
    let confirmed = app.door.shelf().confirm(&pieces).await;
    confirmed.map_err(|error| problems::not_confirmed(&error))
}
