//! Prints what a job came to.

use std::path::Path;

use ikada_api::Client;
use ikada_api::client::GetOptions;
use ikada_api::s3::{StorePlace, Upload};
use ikada_api::v1::{JobResult, ObjectInfo, ObjectPage};

use crate::commands::backup::open_store;
use crate::commands::object::{Target, download, to_stdout};
use crate::failure::Failure;
use crate::render::{OutputKind, Screen, plain, write};

/// Size of the parts in which outputs go to an object store.
const PART_BYTES: usize = 8 << 20;
/// The bucket of jobs' outputs.
const BUCKET: &str = "jobs";

pub(super) async fn print(
    client: &Client,
    id: &str,
    to: Option<&Path>,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let found = client.job_result(id).await?;
    if found.status != "done" {
        let reason = found.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let message = format!("job {id} has no result, it is {}{reason}", found.status);
        return Err(Failure::failed_next(message, advice(id, &found.status)));
    }
    if let Some(to) = to {
        return save(client, &found, to).await;
    }
    if is_elsewhere(&found) {
        return match screen.kind() {
            OutputKind::Table | OutputKind::Quiet => addresses(client, found).await,
            OutputKind::Json => show_page(found, screen),
        };
    }
    match found.outputs.as_slice() {
        [] => match &found.result {
            Some(result) => write(&format!("{}\n", result.get())),
            None => {
                write(&found.result_base64.map_or_else(String::new, |text| format!("{text}\n")))
            }
        },
        [one] if found.next.is_none() => {
            let options = GetOptions { version: Some(one.version.0), ..GetOptions::default() };
            to_stdout(client, BUCKET, &one.key, options).await
        }
        _ => {
            let count = found.outputs.len();
            match found.next {
                Some(_) => eprintln!("the first {count} outputs; fetch all with --to FOLDER"),
                None => eprintln!("{count} outputs; fetch them with --to FOLDER"),
            }
            show_page(found, screen)
        }
    }
}

/// What to do about a job that has no result.
fn advice(id: &str, status: &str) -> String {
    match status {
        "error" => {
            format!("look at its tasks: ikada job tasks {id}; submit it again once that is mended")
        }
        "cancelled" => "it will have none; submit it again".to_owned(),
        _ => format!("wait for it: ikada job wait {id}"),
    }
}

/// Prints the first outputs as a document.
fn show_page(found: JobResult, screen: &mut Screen) -> Result<(), Failure> {
    screen.show(&ObjectPage { objects: found.outputs, next: found.next, ..ObjectPage::default() })
}

/// Whether all outputs were brought to addresses.
fn is_elsewhere(found: &JobResult) -> bool {
    !found.outputs.is_empty() && found.outputs.iter().all(|output| output.address.is_some())
}

/// Prints where the outputs lie, page by page.
async fn addresses(client: &Client, found: JobResult) -> Result<(), Failure> {
    let (id, mut page) = (found.id.clone(), found);
    loop {
        let lines = page.outputs.iter().filter_map(|output| output.address.as_deref());
        write(&lines.map(|address| format!("{address}\n")).collect::<String>())?;
        let Some(next) = page.next.take() else {
            return Ok(());
        };
        page = client.job_result_after(&id, Some(&next)).await?;
    }
}

/// Where outputs go.
enum Place<'a> {
    /// A file, or a folder for several: named by stage, number and name.
    Files(&'a Path),
    /// An object of a store, or all below one that ends with a slash.
    Store(&'a str),
}

/// Saves all outputs, page by page.
async fn save(client: &Client, found: &JobResult, to: &Path) -> Result<(), Failure> {
    let place = match to.to_str().filter(|to| ikada_worker::exec::is_store(to)) {
        Some(to) => Place::Store(to),
        None => Place::Files(to),
    };
    let many = found.outputs.len() > 1 || found.next.is_some();
    if let Place::Store(to) = &place
        && many
        && !to.ends_with('/')
    {
        let rule = "there are several outputs; name a folder, with a slash at its end";
        return Err(Failure::usage(format!("--to {to}: {rule}")));
    }
    let mut page = found.clone();
    loop {
        // Here is one line that says where it lies; saved as if it were the output it would be taken for it.
        let elsewhere = page.outputs.iter().find_map(|output| output.address.as_deref());
        if let Some(address) = elsewhere {
            let id = &found.id;
            return Err(Failure::usage(format!(
                "--to {}: the outputs were brought to addresses, as {address}; fetch them from there, \
                 ikada job result {id} prints them all",
                to.display()
            )));
        }
        for output in &page.outputs {
            let name = output.key.strip_prefix(&format!("{}/", found.id)).unwrap_or(&output.key);
            match &place {
                Place::Store(to) => send(client, output, name, to).await?,
                Place::Files(to) => fetch(client, output, name, to, many).await?,
            }
        }
        let Some(next) = page.next.take() else {
            return Ok(());
        };
        page = client.job_result_after(&found.id, Some(&next)).await?;
    }
}

/// Puts an output into an object store. Nothing is replaced where the store can tell.
async fn send(client: &Client, output: &ObjectInfo, name: &str, to: &str) -> Result<(), Failure> {
    let to = if to.ends_with('/') { format!("{to}{name}") } else { to.to_owned() };
    let Some(Ok(place)) = StorePlace::parse(&to) else {
        let rule = "name an object, as s3://BUCKET/KEY";
        return Err(Failure::usage(format!("--to {to}: {rule}")));
    };
    let options = GetOptions { version: Some(output.version.0), ..GetOptions::default() };
    let mut reader = client.get_object(BUCKET, &output.key, &options).await?;
    let mut upload = Upload::begin(open_store(&place)?, place, PART_BYTES);
    let sent = async {
        while let Some(bytes) = reader.next().await? {
            upload.push(bytes).await?;
        }
        upload.finish().await?;
        Ok::<(), Failure>(())
    };
    if let Err(error) = sent.await {
        // What is left of it has no name.
        let _ = upload.abort().await;
        return Err(error);
    }
    eprintln!("{}", plain(&to));
    Ok(())
}

/// Puts an output into a file.
async fn fetch(
    client: &Client,
    output: &ObjectInfo,
    name: &str,
    to: &Path,
    many: bool,
) -> Result<(), Failure> {
    let (target, name) = match many || to.is_dir() {
        true => (Target::folder(to)?, name.replace('/', ".")),
        false => Target::of_file(to)?,
    };
    let options = GetOptions { version: Some(output.version.0), ..GetOptions::default() };
    download(client, BUCKET, &output.key, options, &target, &name).await?;
    eprintln!("{}", plain(&target.shown(&name)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_still_end_well_is_waited_for() {
        assert!(advice("j", "in_progress").contains("ikada job wait j"));
        assert!(advice("j", "halted").contains("ikada job wait j"));
        assert!(advice("j", "error").contains("ikada job tasks j"));
        assert!(!advice("j", "cancelled").contains("wait"));
    }
}
