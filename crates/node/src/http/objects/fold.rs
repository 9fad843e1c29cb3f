//! Names of a bucket in order, those that go on behind a delimiter told once (CH-11): what lists of folders are made of.
//!
//! Promise: one call reads a bounded number of pages, however many names a folder has; what is left is told by `next`, which
//! lies behind every name that was looked at, whatever characters names are made of.

use std::sync::Arc;

use ikada_api::state::{BucketName, Object};
use ikada_replica::call::{Query, View};

use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{Seen, read};

/// Most names read at a time.
const NAMES_MAX: usize = 1_000;
/// Names read behind a folder: the next may be a folder again.
const NAMES_FEW: usize = 16;
/// Pages of the state read for one answer: folding may pass over many names.
const READS_MAX: usize = 64;
/// No character is above it. A name may have it, too, and then lies behind the place that is made with it.
const HIGHEST: char = '\u{10ffff}';

/// What was asked for.
pub(in crate::http) struct Wish<'a> {
    pub(in crate::http) bucket: BucketName,
    pub(in crate::http) prefix: &'a str,
    pub(in crate::http) delimiter: Option<&'a str>,
    /// Most objects and prefixes together.
    pub(in crate::http) max: usize,
    pub(in crate::http) after: Option<String>,
}

/// What was found.
#[derive(Default)]
pub(in crate::http) struct Folded {
    pub(in crate::http) objects: Vec<Arc<Object>>,
    pub(in crate::http) prefixes: Vec<String>,
    /// Where the next answer begins, if there is more.
    pub(in crate::http) next: Option<String>,
    /// The last look, which tells how fresh all this is.
    pub(in crate::http) seen: Option<Seen>,
}

impl Folded {
    pub(in crate::http) fn len(&self) -> usize {
        self.objects.len() + self.prefixes.len()
    }
}

/// Looks for them.
pub(in crate::http) async fn fold<D: Door>(
    app: &App<D>,
    context: &Context,
    wish: &Wish<'_>,
) -> Result<Folded, Stop> {
    let mut found = Folded::default();
    let mut after = wish.after.clone();
    let mut limit = NAMES_MAX.min(wish.max + 1);
    for _ in 0..READS_MAX {
        let query = Query::Objects {
            namespace: context.namespace.clone(),
            bucket: wish.bucket.clone(),
            prefix: wish.prefix.to_owned(),
            after: after.clone(),
            limit,
        };
        let seen = found.seen.insert(read(app, context, query).await?);
        let View::Objects(page) = &seen.view else { return Err(mismatch("list objects")) };
        let (objects, more) = (page.objects.clone(), page.next.is_some());
        let mut skipped = false;
        for object in objects {
            if found.len() == wish.max {
                found.next = after;
                return Ok(found);
            }
            match beginning(wish, object.name.as_str()) {
                None => {
                    after = Some(object.name.to_string());
                    found.objects.push(object);
                }
                Some(prefix) => {
                    let behind = format!("{prefix}{HIGHEST}");
                    // The answer before this one may have ended among names behind that place.
                    let is_told = found.prefixes.last() == Some(&prefix)
                        || wish.after.as_ref().is_some_and(|after| after.starts_with(&behind));
                    if !is_told {
                        found.prefixes.push(prefix);
                    }
                    // Names below it are passed over by asking again behind them.
                    after = Some(behind.max(object.name.to_string()));
                    skipped = true;
                    break;
                }
            }
        }
        if !skipped && !more {
            return Ok(found);
        }
        limit = if skipped { NAMES_FEW } else { NAMES_MAX };
    }
    found.next = after;
    Ok(found)
}

/// The part of a name up to the delimiter after the prefix; none if there is no delimiter.
fn beginning(wish: &Wish<'_>, name: &str) -> Option<String> {
    let delimiter = wish.delimiter?;
    let rest = name.strip_prefix(wish.prefix)?;
    let end = rest.find(delimiter)? + delimiter.len();
    Some(format!("{}{}", wish.prefix, &rest[..end]))
}
