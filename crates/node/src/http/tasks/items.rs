//! Reading lists item by item: an item that cannot be read is refused alone.
//!
//! A list is read in one go first, which is all that good requests cost; only if that fails is each item read on its
//! own, to find those that are at fault.

use ikada_api::Problem;
use ikada_api::convert::FieldError;
use ikada_api::v1::{Number, RenewItem, RenewRequest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::http::problems;
use crate::http::request::read_json;

/// A submission whose items are not judged yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LooseBatch {
    tasks: Vec<Box<RawValue>>,
}

/// A worker's report whose items are not judged yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LooseReport {
    worker: String,
    tasks: Vec<Box<RawValue>>,
}

/// A renewal whose items are not judged yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LooseRenewal {
    worker: String,
    #[serde(default)]
    session: Option<Number>,
    tasks: Vec<Box<RawValue>>,
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
    body: &[u8],
    whole: impl Fn(R) -> Vec<T>,
) -> Result<Vec<Read<T>>, Problem> {
    match read_json::<R>(body) {
        Ok(request) => Ok(whole(request).into_iter().map(Ok).collect()),
        Err(problem) => {
            let loose = read_loose::<LooseBatch>(body, problem)?;
            Ok(read_each(&loose.tasks))
        }
    }
}

/// The worker and the items of a report.
pub(super) fn read_report<R: DeserializeOwned, T: DeserializeOwned>(
    body: &[u8],
    whole: impl Fn(R) -> (String, Vec<T>),
) -> Result<(String, Vec<Read<T>>), Problem> {
    match read_json::<R>(body) {
        Ok(request) => {
            let (worker, tasks) = whole(request);
            Ok((worker, tasks.into_iter().map(Ok).collect()))
        }
        Err(problem) => {
            let loose = read_loose::<LooseReport>(body, problem)?;
            Ok((loose.worker, read_each(&loose.tasks)))
        }
    }
}

/// Worker, session and claims.
pub(super) type ReadRenewal = (String, Option<Number>, Vec<Read<RenewItem>>);

/// The worker, its session and the claims of a renewal. The session counts only if every claim could be read: it says
/// that the list is complete.
pub(super) fn read_renewal(body: &[u8]) -> Result<ReadRenewal, Problem> {
    match read_json::<RenewRequest>(body) {
        Ok(request) => {
            let tasks = request.tasks.into_iter().map(Ok).collect();
            Ok((request.worker, request.session, tasks))
        }
        Err(problem) => {
            let loose = read_loose::<LooseRenewal>(body, problem)?;
            let tasks = read_each(&loose.tasks);
            let session = loose.session.filter(|_| tasks.iter().all(Result::is_ok));
            Ok((loose.worker, session, tasks))
        }
    }
}

/// A request whose fault lies outside its items is refused whole, as it was.
fn read_loose<L: DeserializeOwned>(body: &[u8], problem: Problem) -> Result<L, Problem> {
    match &*problem.code {
        "json_too_deep" => Err(problem),
        _ => read_json::<L>(body),
    }
}

fn read_each<T: DeserializeOwned>(parts: &[Box<RawValue>]) -> Vec<Read<T>> {
    let read = |(position, part): (usize, &RawValue)| {
        read_json::<T>(part.get().as_bytes()).map_err(|mut problem| {
            let inner = problem.field.take();
            problem.field = Some(match inner {
                Some(field) => format!("tasks[{position}].{field}").into(),
                None => format!("tasks[{position}]").into(),
            });
            Box::new(BadItem { id: named_id(part), problem })
        })
    };
    parts.iter().map(|part| &**part).enumerate().map(read).collect()
}

/// The id that a bad item names, so that its sender can tell which one it was.
fn named_id(part: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        id: String,
    }
    serde_json::from_str::<Named>(part.get()).map(|named| named.id).unwrap_or_default()
}

/// What is wrong with the item at a place of a list.
pub(super) fn bad_item(position: usize, error: FieldError) -> Problem {
    problems::bad_field(&error.inside(&format!("tasks[{position}]")))
}
