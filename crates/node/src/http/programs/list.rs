//! `GET /v1/programs`: what is built in, and what was pushed.

use ikada_api::convert::BUILTIN_PROGRAMS;
use ikada_api::v1::{ProgramInfo, ProgramPage};
use ikada_replica::call::{Query, View};

use super::NAMES;
use super::describe::{describe, place};
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

/// Most programs that are listed; a namespace with more is listed object by object.
const LISTED_MAX: usize = 1_000;

/// A program that every worker of this build has.
pub(super) fn built_in(name: &str) -> ProgramInfo {
    let (name, kind) = (name.to_owned(), "handler".to_owned());
    ProgramInfo { name, kind, digest: None, pushed_ms: None, manifest: None }
}

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let (namespace, bucket, _) = place(&context.namespace, NAMES.trim_end_matches('/'))?;
    let (prefix, after, limit) = (NAMES.to_owned(), None, LISTED_MAX);
    let query = Query::Objects { namespace, bucket, prefix, after, limit };
    let seen = read(app, context, query).await?;
    let View::Objects(page) = &seen.view else {
        return Err(mismatch("list programs"));
    };
    let mut programs: Vec<ProgramInfo> =
        BUILTIN_PROGRAMS.iter().map(|name| built_in(name)).collect();
    programs.extend(page.objects.iter().filter_map(|object| describe(object)));
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    show_view(context, &seen, &ProgramPage { programs })
}
