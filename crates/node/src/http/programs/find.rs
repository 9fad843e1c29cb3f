//! Finds programs that a submission names, before it is proposed (B4-39).
//!
//! Names are looked up linearizably: whoever has seen a push can submit for it through any node. Submissions without
//! programs cost nothing. An entry that is not the module's default is looked for in the module itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use ikada_api::convert::{BuiltinPrograms, FindProgram};
use ikada_api::state::{
    Digest, Namespace, ObjectKey, ObjectVersion, ProgramKind, ProgramName, ProgramRef,
};
use ikada_api::v1::ProgramManifest;
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use super::check_module::check_module;
use super::describe::{kind_of, named, place};
use crate::http::answer::Stop;
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::Seen;

/// Most programs, and most entries of modules, that one submission may name: each is a look at the state.
const NAMES_MAX: usize = 64;

/// An entry of a module, by the digest of its manifest.
type EntryKey = (Digest, String);

/// Programs that were looked up, and what was asked for in vain.
#[derive(Default)]
struct Known {
    found: BTreeMap<ProgramName, ProgramRef>,
    entries: BTreeMap<EntryKey, Result<(), String>>,
    missing: Mutex<Missing>,
}

/// What a reading needs to know and Known does not.
#[derive(Default)]
struct Missing {
    names: Vec<ProgramName>,
    entries: Vec<EntryKey>,
}

impl Missing {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.entries.is_empty()
    }
}

/// Notes something once; beyond the bound the submission is refused anyway.
fn note<T: PartialEq>(list: &mut Vec<T>, one: T) {
    if list.len() <= NAMES_MAX && !list.contains(&one) {
        list.push(one);
    }
}

impl FindProgram for Known {
    fn find(&self, namespace: &Namespace, name: &ProgramName) -> Option<ProgramRef> {
        let known = BuiltinPrograms.find(namespace, name);
        let known = known.or_else(|| self.found.get(name).cloned());
        if known.is_none() {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            note(&mut missing.names, name.clone());
        }
        known
    }

    fn check_entry(&self, program: &ProgramRef, entry: &str) -> Result<(), String> {
        BuiltinPrograms.check_entry(program, entry)?;
        let Some(digest) = program.digest.filter(|_| program.kind == ProgramKind::Wasm) else {
            return Ok(());
        };
        let key = (digest, entry.to_owned());
        match self.entries.get(&key) {
            Some(checked) => checked.clone(),
            None => {
                let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                note(&mut missing.entries, key);
                Ok(())
            }
        }
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
        wanted.names.retain(|name| !asked.contains(name));
        if wanted.is_empty() {
            return done;
        }
        drop(done);
        let entries = known.entries.len() + wanted.entries.len();
        if asked.len() + wanted.names.len() > NAMES_MAX || entries > NAMES_MAX {
            let rule = format!("may name at most {NAMES_MAX} programs and entries in one request");
            return Err(problems::bad_parameter("program", rule).into());
        }
        for name in wanted.names {
            if let Some(program) = look_up(app, context, &name).await? {
                known.found.insert(name.clone(), program);
            }
            asked.insert(name);
        }
        for (digest, entry) in wanted.entries {
            let checked = look_inside(app, context, digest, &entry).await?;
            known.entries.insert((digest, entry), checked);
        }
    }
}

async fn look_up<D: Door>(
    app: &App<D>,
    context: &Context,
    name: &ProgramName,
) -> Result<Option<ProgramRef>, Stop> {
    let newest = newest(app, context, named(&context.namespace, name)?).await?;
    Ok(newest.and_then(|newest| {
        let kind = kind_of(&newest)?;
        // A handler is code of its workers: nothing here says which.
        let digest = Some(newest.digest).filter(|_| kind != ProgramKind::Handler);
        Some(ProgramRef { name: name.clone(), kind, digest, entry: None })
    }))
}

/// Whether the module of a manifest can be begun by an entry: it is looked at as on its push.
async fn look_inside<D: Door>(
    app: &App<D>,
    context: &Context,
    manifest: Digest,
    entry: &str,
) -> Result<Result<(), String>, Stop> {
    let place_of = |name: String| place(&context.namespace, &name);
    let Some(found) = newest(app, context, place_of(format!("manifest/{manifest}"))?).await? else {
        return Ok(Err("its module is gone; push it again".to_owned()));
    };
    let manifest: ProgramManifest =
        serde_json::from_slice(&bytes_of(app, &found).await?).map_err(|_| mismatch("program"))?;
    let Some(file) = manifest.file else { return Err(mismatch("program")) };
    let Some(found) = newest(app, context, place_of(format!("file/{}", file.digest))?).await?
    else {
        return Ok(Err("its module is gone; push it again".to_owned()));
    };
    let (bytes, entry) = (bytes_of(app, &found).await?, entry.to_owned());
    // Beside the threads that answer: a large module takes a while.
    let checked = tokio::task::spawn_blocking(move || check_module(&bytes, &entry)).await;
    let checked = checked.map_err(|_| problems::internal())?;
    Ok(checked.map_err(|words| format!("the module {words}")))
}

/// An object of the bucket of programs.
async fn newest<D: Door>(
    app: &App<D>,
    context: &Context,
    key: ObjectKey,
) -> Result<Option<ObjectVersion>, Stop> {
    // Forwarded in any case: the caller was not asked to go elsewhere for it.
    let request = Request::Read(Query::Object(key), Consistency::Linearizable);
    let answer = call(app, context, request, Routing::Forward).await?;
    let seen = Seen::of(answer).ok_or_else(|| mismatch("program"))?;
    let View::Object(object) = seen.view else {
        return Err(mismatch("program"));
    };
    Ok(object.as_ref().and_then(|object| object.newest()).cloned())
}

/// Its bytes; what is pushed is bounded.
async fn bytes_of<D: Door>(app: &App<D>, version: &ObjectVersion) -> Result<Vec<u8>, Stop> {
    let mut all = Vec::new();
    for piece in version.chunks.iter() {
        let bytes = app.door.shelf().fetch(*piece, true).await;
        all.extend_from_slice(&bytes.map_err(|error| problems::piece_missing(&error))?);
    }
    Ok(all)
}
