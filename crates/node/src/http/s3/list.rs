//! `ListObjectsV2` and its older form: names of a bucket, in order, perhaps folded at a delimiter.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ikada_api::s3::escape::encode;
use ikada_api::state::ObjectVersion;

use super::buckets::{bucket, page};
use super::fault::Fault;
use super::route::Call;
use crate::http::answer::Reply;
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::{Folded, Wish, check_prefix, fold, iso_date};
use crate::http::request::Context;
use ikada_api::s3::xml::element;

/// Most names of one answer.
const KEYS_MAX: usize = 1_000;

/// What was asked for.
struct Wanted<'a> {
    wish: Wish<'a>,
    escaped: bool,
}

pub(super) async fn list<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<Reply, Fault> {
    let second = call.query("list-type") == Some("2");
    let wanted = read_wish(context, call, second)?;
    let found = fold(app, context, &wanted.wish).await?;
    Ok(show(call, &wanted, &found, second))
}

fn read_wish<'a>(context: &Context, call: &'a Call, second: bool) -> Result<Wanted<'a>, Fault> {
    let max = match call.query("max-keys") {
        None => KEYS_MAX,
        Some(text) => {
            let max: usize = text.parse().map_err(|_| Fault::argument("max-keys is no number"))?;
            max.min(KEYS_MAX)
        }
    };
    let after = match (second, call.query("continuation-token")) {
        (true, Some(token)) => Some(read_token(token)?),
        (true, None) => call.query("start-after").map(str::to_owned),
        (false, _) => call.query("marker").map(str::to_owned),
    };
    let wish = Wish {
        bucket: bucket(context)?,
        prefix: call.query("prefix").unwrap_or(""),
        delimiter: call.query("delimiter").filter(|delimiter| !delimiter.is_empty()),
        max,
        after: after.filter(|after| !after.is_empty()),
    };
    check_prefix(&wish.bucket, wish.prefix)?;
    Ok(Wanted { wish, escaped: call.query("encoding-type") == Some("url") })
}

/// Where a list goes on, as it was told.
pub(super) fn read_token(token: &str) -> Result<String, Fault> {
    let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Fault::argument("the continuation token is not ours"))
}

/// How the place where a list goes on is told.
pub(super) fn token(after: &str) -> String {
    URL_SAFE_NO_PAD.encode(after)
}

fn show(call: &Call, wanted: &Wanted<'_>, found: &Folded, second: bool) -> Reply {
    let name = |text: &str| match wanted.escaped {
        true => encode(text.as_bytes()),
        false => text.to_owned(),
    };
    let mut body =
        String::from("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    body.push_str(&element("Name", wanted.wish.bucket.as_str()));
    body.push_str(&element("Prefix", &name(wanted.wish.prefix)));
    if let Some(delimiter) = wanted.wish.delimiter {
        body.push_str(&element("Delimiter", &name(delimiter)));
    }
    if wanted.escaped {
        body.push_str(&element("EncodingType", "url"));
    }
    body.push_str(&element("MaxKeys", &wanted.wish.max.to_string()));
    let truncated = found.next.is_some();
    body.push_str(&element("IsTruncated", if truncated { "true" } else { "false" }));
    if second {
        body.push_str(&element("KeyCount", &found.len().to_string()));
        if let Some(token) = call.query("continuation-token") {
            body.push_str(&element("ContinuationToken", token));
        }
        if let Some(next) = &found.next {
            body.push_str(&element("NextContinuationToken", &token(next)));
        }
    } else {
        body.push_str(&element("Marker", &name(call.query("marker").unwrap_or(""))));
        if let Some(next) = &found.next {
            body.push_str(&element("NextMarker", &name(next)));
        }
    }
    let newest = found.objects.iter().filter_map(|object| Some((object, object.newest()?)));
    for (object, version) in newest {
        body.push_str(&show_object(&name(object.name.as_str()), version));
    }
    for prefix in &found.prefixes {
        let prefix = element("Prefix", &name(prefix));
        body.push_str(&format!("<CommonPrefixes>{prefix}</CommonPrefixes>"));
    }
    body.push_str("</ListBucketResult>");
    page(&body)
}

fn show_object(name: &str, version: &ObjectVersion) -> String {
    let facts = [
        element("Key", name),
        element("LastModified", &iso_date(version.created_ms)),
        element("ETag", &format!("\"{}\"", version.digest)),
        element("Size", &version.size.to_string()),
        element("StorageClass", "STANDARD"),
    ];
    format!("<Contents>{}</Contents>", facts.concat())
}
