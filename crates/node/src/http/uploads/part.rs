//! `PUT /v1/uploads/{upload}/parts/{part}`: takes one part in. The same part again replaces it.

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::state::PutCondition;
use ikada_api::v1::UploadPart;

use super::keep::{PART_TYPE, PARTS_MAX, drop_part, look, part_name, place};
use super::upload_of;
use crate::admission::Lane;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::namespaces::admit_objects;
use crate::http::objects::{Announced, commit, read_headers, take_in};
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn put_part<D, B>(
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
    let upload = upload_of(context)?;
    let number = context.names[1].parse::<usize>().ok();
    let number = number.filter(|number| (1..=PARTS_MAX).contains(number));
    let rule = || problems::bad_parameter("part", format!("must be 1 to {PARTS_MAX}"));
    let number = number.ok_or_else(rule)?;
    let announced = read_headers(parts)?;
    // There must be one before its bytes are taken in.
    look(app, context, upload).await?;
    let key = place(context, &part_name(upload, number))?;
    admit_objects(app, context, (&key.0, &key.1), announced.length).await?;
    let _place = app.transfer(Lane::Upload, context).await?;
    let content = take_in(app, body).await?;
    if announced.digest.is_some_and(|digest| digest != content.digest) {
        return Err(problems::wrong_digest(&content.digest.to_string()).into());
    }
    let (size, digest) = (content.size, content.digest.to_string());
    let announced =
        Announced { content_type: PART_TYPE.to_owned(), condition: PutCondition::Any, ..announced };
    let stored = commit(app, context, key, announced, content).await?;
    // It may have been ended while the bytes came: then nobody else would remove this part.
    if let Err(Stop::Problem(problem)) = look(app, context, upload).await
        && problem.code == "upload_not_found"
    {
        drop_part(app, context, &part_name(upload, number)).await?;
        return Err(Stop::Problem(problem));
    }
    let shown = UploadPart { part: number as u32, size, digest };
    show_document(context, stored.status(), &shown)
}
