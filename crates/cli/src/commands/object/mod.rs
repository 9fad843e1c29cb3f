//! `ikada object put|get|list|delete`. Bytes are streamed; bars go to standard error, data to standard output.

mod delete;
mod get;
mod list;
mod parts;
mod place;
mod put;
mod several;
mod spool;
mod stdout;
mod tally;
mod target;

use ikada_api::client::Error;
use ikada_api::v1::ObjectInfo;

pub(crate) use get::{digest_of, download};
pub(crate) use parts::put as put_in_parts;
pub(crate) use place::split;
pub(crate) use stdout::to_stdout;
pub(crate) use tally::Counted;
pub(crate) use target::Target;

use crate::args::{ObjectCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn object(
    shared: &SharedArgs,
    command: ObjectCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        ObjectCommand::Put(args) => put::put(&client, args, screen).await,
        ObjectCommand::Get(args) => get::get(&client, args, screen).await,
        ObjectCommand::List(args) => list::list(&client, args, screen).await,
        ObjectCommand::Delete(args) => delete::delete(&client, args, screen).await,
    }
}

/// All objects whose names begin with a text.
pub(crate) async fn objects_under(
    client: &ikada_api::Client,
    bucket: &str,
    prefix: &str,
) -> Result<Vec<ObjectInfo>, Failure> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = client.objects(bucket, prefix, after.as_deref(), false).await?;
        found.extend(page.objects);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// All objects in a folder and below; says so where there are none.
async fn objects_in(
    client: &ikada_api::Client,
    bucket: &str,
    key: &str,
) -> Result<Vec<ObjectInfo>, Failure> {
    let folder = place::folder(key);
    let found = objects_under(client, bucket, &folder).await?;
    if found.is_empty() {
        eprintln!("there is nothing in {}", crate::render::plain(&format!("{bucket}/{folder}")));
    }
    Ok(found)
}

/// Whether an object is not there: what was listed a moment ago may be gone by now.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Refused(problem) if problem.code == "object_not_found")
}

/// A bar that counts bytes.
fn bytes_bar(length: u64, what: &str) -> indicatif::ProgressBar {
    crate::render::bytes_bar(Some(length)).with_message(what.to_owned())
}
