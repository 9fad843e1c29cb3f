//! `ListObjectsV2` and its older form: names of a bucket, in order, perhaps folded at a delimiter.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ikada_api::s3::escape::encode;
use ikada_api::state::{BucketName, Object, ObjectVersion};
use ikada_replica::call::{Query, View};

use super::buckets::{bucket, page};
use super::fault::Fault;
use super::route::Call;
use crate::http::answer::Reply;
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::iso_date;
use crate::http::request::Context;
use crate::http::requests::read;
use ikada_api::s3::xml::element;

/// Most names of one answer.
const KEYS_MAX: usize = 1_000;
/// Pages of the state read for one answer: folding may pass over many names.
const READS_MAX: usize = 64;
/// Above every character that a name can go on with.
const HIGHEST: char = '\u{10ffff}';

/// What was asked for.
struct Wanted<'a> {
    bucket: BucketName,
    prefix: &'a str,
    delimiter: Option<&'a str>,
    max: usize,
    after: Option<String>,
    escaped: bool,
}

/// What was found.
#[derive(Default)]
struct Found {
    objects: Vec<Arc<Object>>,
    prefixes: Vec<String>,
    /// Where the next answer begins, if there is more.
    next: Option<String>,
}

impl Found {
    fn len(&self) -> usize {
        self.objects.len() + self.prefixes.len()
    }
}

pub(super) async fn list<D: Door>(
    app: &App<D>,
    context: &Context,
    call: &Call,
) -> Result<Reply, Fault> {
    let second = call.query("list-type") == Some("2");
    let wanted = read_wish(context, call, second)?;
    let found = find(app, context, &wanted).await?;
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
        (true, Some(token)) => {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            Some(text.ok_or_else(|| Fault::argument("the continuation token is not ours"))?)
        }
        (true, None) => call.query("start-after").map(str::to_owned),
        (false, _) => call.query("marker").map(str::to_owned),
    };
    Ok(Wanted {
        bucket: bucket(context)?,
        prefix: call.query("prefix").unwrap_or(""),
        delimiter: call.query("delimiter").filter(|delimiter| !delimiter.is_empty()),
        max,
        after: after.filter(|after| !after.is_empty()),
        escaped: call.query("encoding-type") == Some("url"),
    })
}

async fn find<D: Door>(
    app: &App<D>,
    context: &Context,
    wanted: &Wanted<'_>,
) -> Result<Found, Fault> {
    let mut found = Found::default();
    let mut after = wanted.after.clone();
    for _ in 0..READS_MAX {
        let query = Query::Objects {
            namespace: context.namespace.clone(),
            bucket: wanted.bucket.clone(),
            prefix: wanted.prefix.to_owned(),
            after: after.clone(),
            limit: KEYS_MAX,
        };
        let seen = read(app, context, query).await?;
        let View::Objects(page) = seen.view else { return Err(mismatch("list objects").into()) };
        let more = page.next.is_some();
        let mut skipped = false;
        for object in page.objects {
            if found.len() == wanted.max {
                found.next = after;
                return Ok(found);
            }
            match fold(wanted, object.name.as_str()) {
                None => {
                    after = Some(object.name.to_string());
                    found.objects.push(object);
                }
                Some(prefix) => {
                    // Names below it are passed over by asking again behind them.
                    after = Some(format!("{prefix}{HIGHEST}"));
                    if found.prefixes.last() != Some(&prefix) {
                        found.prefixes.push(prefix);
                    }
                    skipped = true;
                    break;
                }
            }
        }
        if !skipped && !more {
            return Ok(found);
        }
    }
    found.next = after;
    Ok(found)
}

/// The part of a name up to the delimiter after the prefix; none if there is no delimiter.
fn fold(wanted: &Wanted<'_>, name: &str) -> Option<String> {
    let delimiter = wanted.delimiter?;
    let rest = name.strip_prefix(wanted.prefix)?;
    let end = rest.find(delimiter)? + delimiter.len();
    Some(format!("{}{}", wanted.prefix, &rest[..end]))
}

fn show(call: &Call, wanted: &Wanted<'_>, found: &Found, second: bool) -> Reply {
    let name = |text: &str| match wanted.escaped {
        true => encode(text.as_bytes()),
        false => text.to_owned(),
    };
    let mut body =
        String::from("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    body.push_str(&element("Name", wanted.bucket.as_str()));
    body.push_str(&element("Prefix", &name(wanted.prefix)));
    if let Some(delimiter) = wanted.delimiter {
        body.push_str(&element("Delimiter", &name(delimiter)));
    }
    if wanted.escaped {
        body.push_str(&element("EncodingType", "url"));
    }
    body.push_str(&element("MaxKeys", &wanted.max.to_string()));
    let truncated = found.next.is_some();
    body.push_str(&element("IsTruncated", if truncated { "true" } else { "false" }));
    if second {
        body.push_str(&element("KeyCount", &found.len().to_string()));
        if let Some(token) = call.query("continuation-token") {
            body.push_str(&element("ContinuationToken", token));
        }
        if let Some(next) = &found.next {
            body.push_str(&element("NextContinuationToken", &URL_SAFE_NO_PAD.encode(next)));
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
