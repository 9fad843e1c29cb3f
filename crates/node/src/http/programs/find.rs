//! Finds programs that a submission names, before it is proposed (B4-39).
//!
//! Names are looked up linearizably: whoever has seen a push can submit for it through any node. Submissions without
//! programs cost nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use ikada_api::convert::{BuiltinPrograms, FindProgram};
use ikada_api::state::{Namespace, ProgramName, ProgramRef};
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use super::describe::{kind_of, named};
use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::Seen;

/// Most programs that one submission may name: each is a look at the state.
const NAMES_MAX: usize = 64;

/// Programs that were looked up, and names that were asked for in vain.
#[derive(Default)]
struct Known {
    found: BTreeMap<ProgramName, ProgramRef>,
    missing: Mutex<Vec<ProgramName>>,
}

impl FindProgram for Known {
    fn find(&self, namespace: &Namespace, name: &ProgramName) -> Option<ProgramRef> {
        let known = BuiltinPrograms.find(namespace, name);
        let known = known.or_else(|| self.found.get(name).cloned());
        if known.is_none() {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            if missing.len() <= NAMES_MAX && !missing.contains(name) {
                missing.push(name.clone());
            }
        }
        known
    }
}

/// Reads a submission; if it names programs, they are looked up and it is read again. A reading ends at the first unknown
/// program of a task, so that a follow-up's may be asked for only when the task's own is known.
pub(in crate::http) async fn with_programs<D: Door, T>(
    app: &App<D>,
    context: &Context,
    read: impl Fn(&dyn FindProgram) -> Result<T, Stop>,
) -> Result<T, Stop> {
    let mut known = Known::default();
    let mut asked = BTreeSet::new();
    loop {
        let done = read(&known);
        let missing = known.missing.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = std::mem::take(missing);
        wanted.retain(|name| !asked.contains(name));
        if wanted.is_empty() {
            return done;
        }
        drop(done);
        if asked.len() + wanted.len() > NAMES_MAX {
            let rule = format!("may name at most {NAMES_MAX} programs in one request");
            return Err(problems::bad_parameter("program", rule).into());
        }
        for name in wanted {
            if let Some(program) = look_up(app, context, &name).await? {
                known.found.insert(name.clone(), program);
            }
            asked.insert(name);
        }
    }
}

async fn look_up<D: Door>(
    app: &App<D>,
    context: &Context,
    name: &ProgramName,
) -> Result<Option<ProgramRef>, Stop> {
    let query = Query::Object(named(&context.namespace, name)?);
    // Forwarded in any case: the caller was not asked to go elsewhere for it.
    let request = Request::Read(query, Consistency::Linearizable);
    let answer = call(app, context, request, Routing::Forward).await?;
    let seen = Seen::of(answer).ok_or_else(|| mismatch("program"))?;
    let View::Object(object) = seen.view else {
        return Err(mismatch("program"));
    };
    let newest = object.as_ref().and_then(|object| object.newest());
    Ok(newest.and_then(|newest| {
        let (kind, digest) = (kind_of(newest)?, Some(newest.digest));
        Some(ProgramRef { name: name.clone(), kind, digest, entry: None })
    }))
}
