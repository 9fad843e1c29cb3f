//! Prints what a job came to.

use std::path::Path;

use ikada_api::Client;
use ikada_api::client::GetOptions;
use ikada_api::v1::{JobResult, ObjectPage};

use crate::commands::object::{Target, download, to_stdout};
use crate::failure::Failure;
use crate::render::{Screen, write};

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
        return Err(Failure::failed_next(message, format!("wait for it: ikada job wait {id}")));
    }
    if let Some(to) = to {
        return save(client, &found, to).await;
    }
    match found.outputs.as_slice() {
        [] => match &found.result {
            Some(result) => write(&format!("{}\n", result.get())),
            None => {
                write(&found.result_base64.map_or_else(String::new, |text| format!("{text}\n")))
            }
        },
        [one] => {
            let options = GetOptions { version: Some(one.version.0), ..GetOptions::default() };
            to_stdout(client.get_object(BUCKET, &one.key, &options).await?).await
        }
        _ => {
            eprintln!("{} outputs; fetch them with --to FOLDER", found.outputs.len());
            screen.show(&ObjectPage { objects: found.outputs, next: None })
        }
    }
}

/// Puts one output into a file, or all into a folder, named by stage, number and name.
async fn save(client: &Client, found: &JobResult, to: &Path) -> Result<(), Failure> {
    let many = found.outputs.len() > 1 || to.is_dir();
    for output in &found.outputs {
        let name = output.key.strip_prefix(&format!("{}/", found.id)).unwrap_or(&output.key);
        let (target, name) = match many {
            true => (Target::folder(to)?, name.replace('/', ".")),
            false => Target::of_file(to)?,
        };
        let options = GetOptions { version: Some(output.version.0), ..GetOptions::default() };
        download(client, BUCKET, &output.key, options, &target, &name).await?;
        eprintln!("{}", target.shown(&name));
    }
    Ok(())
}
