//! Reading lists item by item: an item that cannot be read is refused alone.
//!
//! A list is read in one go first, which is all that good requests cost; only if that fails is each item read on its
//! own, to find those that are at fault.

use ikada_api::Problem;
use ikada_api::cbor::from_slice;
use ikada_api::convert::{FieldError, Form};
use ikada_api::v1::{Number, RenewItem, RenewRequest};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use crate::http::problems;
use crate::http::request::{Context, read_document, read_document_as};

/// A list whose items are not judged yet.
struct Loose {
    worker: Option<String>,
    session: Option<Number>,
    tasks: Vec<Part>,
}

/// One item as it was sent.
enum Part {
    Json(Box<RawValue>),
    Cbor(Vec<u8>),
}

impl Part {
    fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        match self {
            Part::Json(text) => read_document_as(Form::Json, text.get().as_bytes()),
            Part::Cbor(bytes) => read_document_as(Form::Cbor, bytes),
        }
    }
}

/// Which fields a list has besides its items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// None: a submission.
    Bare,
    /// The worker: a report.
    Worker,
    /// The worker and perhaps its session: a renewal.
    Session,
}

/// An item, or the handle that it names and what is wrong with it.
pub(super) type Read<T> = Result<T, Box<BadItem>>;

/// An item that cannot be taken.
pub(super) struct BadItem {
    /// The handle that it names; empty if it names none.
    pub(super) id: String,
    pub(super) problem: Problem,
}

/// The items of a submission. `whole` takes them out of a request that reads as it should.
pub(super) fn read_batch<R: DeserializeOwned, T: DeserializeOwned>(
    context: &Context,
    body: &[u8],
    whole: impl Fn(R) -> Vec<T>,
) -> Result<Vec<Read<T>>, Problem> {
    match read_document::<R>(context, body) {
        Ok(request) => Ok(whole(request).into_iter().map(Ok).collect()),
        Err(problem) => {
            let loose = read_loose(context, body, Head::Bare, problem)?;
            Ok(read_each(&loose.tasks))
        }
    }
}

/// The worker and the items of a report.
pub(super) fn read_report<R: DeserializeOwned, T: DeserializeOwned>(
    context: &Context,
    body: &[u8],
    whole: impl Fn(R) -> (String, Vec<T>),
) -> Result<(String, Vec<Read<T>>), Problem> {
    match read_document::<R>(context, body) {
        Ok(request) => {
            let (worker, tasks) = whole(request);
            Ok((worker, tasks.into_iter().map(Ok).collect()))
        }
        Err(problem) => {
            let loose = read_loose(context, body, Head::Worker, problem)?;
            Ok((loose.worker.unwrap_or_default(), read_each(&loose.tasks)))
        }
    }
}

/// Worker, session and claims.
pub(super) type ReadRenewal = (String, Option<Number>, Vec<Read<RenewItem>>);

/// The worker, its session and the claims of a renewal. The session counts only if every claim could be read: it says
/// that the list is complete.
pub(super) fn read_renewal(context: &Context, body: &[u8]) -> Result<ReadRenewal, Problem> {
    match read_document::<RenewRequest>(context, body) {
        Ok(request) => {
            let tasks = request.tasks.into_iter().map(Ok).collect();
            Ok((request.worker, request.session, tasks))
        }
        Err(problem) => {
            let loose = read_loose(context, body, Head::Session, problem)?;
            let tasks = read_each(&loose.tasks);
            let session = loose.session.filter(|_| tasks.iter().all(Result::is_ok));
            Ok((loose.worker.unwrap_or_default(), session, tasks))
        }
    }
}

/// A request whose fault lies outside its items is refused whole, with the words of whoever found it.
fn read_loose(
    context: &Context,
    body: &[u8],
    head: Head,
    problem: Problem,
) -> Result<Loose, Problem> {
    if &*problem.code == "json_too_deep" {
        return Err(problem);
    }
    let loose = match context.form_given {
        Form::Json => read_loose_json(body, head)?,
        Form::Cbor => read_loose_cbor(body, head).ok_or(problem)?,
    };
    let stray = |field: &str| {
        let words = format!("unknown field `{field}`");
        Err(problems::bad_cbor(words, Some(field.to_owned())))
    };
    match head {
        Head::Bare if loose.worker.is_some() => stray("worker"),
        Head::Bare | Head::Worker if loose.session.is_some() => stray("session"),
        Head::Worker | Head::Session if loose.worker.is_none() => {
            Err(problems::bad_cbor("missing field `worker`", None).with_field("worker"))
        }
        _ => Ok(loose),
    }
}

fn read_loose_json(body: &[u8], head: Head) -> Result<Loose, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Bare {
        tasks: Vec<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Report {
        worker: String,
        tasks: Vec<Box<RawValue>>,
        /// What a report wants beside is left for another try.
        #[serde(default, rename = "claim")]
        _claim: IgnoredAny,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Renewal {
        worker: String,
        #[serde(default)]
        session: Option<Number>,
        tasks: Vec<Box<RawValue>>,
    }
    let (worker, session, tasks) = match head {
        Head::Bare => (None, None, read_document_as::<Bare>(Form::Json, body)?.tasks),
        Head::Worker => {
            let Report { worker, tasks, _claim } = read_document_as(Form::Json, body)?;
            (Some(worker), None, tasks)
        }
        Head::Session => {
            let Renewal { worker, session, tasks } = read_document_as(Form::Json, body)?;
            (Some(worker), session, tasks)
        }
    };
    Ok(Loose { worker, session, tasks: tasks.into_iter().map(Part::Json).collect() })
}

/// None if the fault is in the list itself.
fn read_loose_cbor(body: &[u8], head: Head) -> Option<Loose> {
    let mut loose = Loose { worker: None, session: None, tasks: Vec::new() };
    let mut decoder = minicbor::Decoder::new(body);
    for _ in 0..decoder.map().ok()?? {
        match decoder.str().ok()? {
            "worker" => loose.worker = Some(decoder.str().ok()?.to_owned()),
            "session" => loose.session = Some(Number(decoder.u64().ok()?)),
            "tasks" => {
                for _ in 0..decoder.array().ok()?? {
                    let start = decoder.position();
                    decoder.skip().ok()?;
                    loose.tasks.push(Part::Cbor(body[start..decoder.position()].to_vec()));
                }
            }
            "claim" if head == Head::Worker => decoder.skip().ok()?,
            _ => return None,
        }
    }
    (decoder.position() == body.len()).then_some(loose)
}

fn read_each<T: DeserializeOwned>(parts: &[Part]) -> Vec<Read<T>> {
    let read = |(position, part): (usize, &Part)| {
        part.read::<T>().map_err(|mut problem| {
            problem = at_place(position, problem);
            Box::new(BadItem { id: named_id(part), problem })
        })
    };
    parts.iter().enumerate().map(read).collect()
}

/// The id that a bad item names, so that its sender can tell which one it was.
fn named_id(part: &Part) -> String {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        id: String,
    }
    let named = match part {
        Part::Json(text) => serde_json::from_str::<Named>(text.get()).ok(),
        Part::Cbor(bytes) => from_slice::<Named>(bytes).ok(),
    };
    named.map(|named| named.id).unwrap_or_default()
}

/// A problem of one item, with its place in the list.
pub(super) fn at_place(position: usize, mut problem: Problem) -> Problem {
    problem.field = Some(match problem.field.take() {
        Some(field) => format!("tasks[{position}].{field}").into(),
        None => format!("tasks[{position}]").into(),
    });
    problem
}

/// What is wrong with the item at a place of a list.
pub(super) fn bad_item(position: usize, error: FieldError) -> Problem {
    problems::bad_field(&error.inside(&format!("tasks[{position}]")))
}
