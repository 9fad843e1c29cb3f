//! `ikada job submit`: a job in a file.

use ikada_api::Client;
use ikada_api::v1::{NewJob, WorkInput};
use serde::Deserialize;

use super::cut::Cut;
use super::follow::{follow, judge};
use super::gather::gather;
use crate::args::JobSubmitArgs;
use crate::failure::Failure;
use crate::render::Screen;

/// The field of a stage that names local files.
const FILES: &str = "files";

pub(super) async fn submit(
    client: &Client,
    args: JobSubmitArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let shown = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let (mut job, files) =
        read(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    for (place, patterns) in files {
        let inputs = gather(client, &patterns, &args.bucket, Cut::Whole).await?;
        inputs_of(&mut job, place).extend(inputs);
    }
    job.settings.extend(args.settings);
    let submitted = client.submit_job(&job).await?;
    if !args.wait {
        return screen.show(&submitted);
    }
    let ended = follow(client, &submitted.id).await?;
    screen.show(&ended)?;
    judge(&ended)
}

/// Local files by stage; none is the map.
type Files = Vec<(Option<usize>, Vec<String>)>;

fn read(text: &str) -> Result<(NewJob, Files), String> {
    let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    if let Some(toml::Value::Table(map)) = table.get_mut("map") {
        files.extend(take_files(map)?.map(|patterns| (None, patterns)));
    }
    if let Some(toml::Value::Array(stages)) = table.get_mut("stages") {
        for (place, stage) in stages.iter_mut().enumerate() {
            if let toml::Value::Table(stage) = stage {
                files.extend(take_files(stage)?.map(|patterns| (Some(place), patterns)));
            }
        }
    }
    let job = NewJob::deserialize(table).map_err(|error| error.to_string())?;
    Ok((job, files))
}

fn take_files(stage: &mut toml::Table) -> Result<Option<Vec<String>>, String> {
    let Some(value) = stage.remove(FILES) else {
        return Ok(None);
    };
    let patterns = Vec::<String>::deserialize(value);
    patterns.map(Some).map_err(|error| format!("{FILES}: {error}"))
}

fn inputs_of(job: &mut NewJob, place: Option<usize>) -> &mut Vec<WorkInput> {
    match place {
        Some(place) => &mut job.stages[place].inputs,
        None => &mut job.map.get_or_insert_default().inputs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_job_with_files_of_this_machine() {
        let text = r#"
            name = "count"
            settings = { case = "fold" }
            [map]
            program = "wordcount"
            files = ["texts/*.txt"]
            [reduce]
            program = "merge"
        "#;
        let (job, files) = read(text).unwrap();
        assert_eq!(job.name.as_deref(), Some("count"));
        assert_eq!(files, [(None, vec!["texts/*.txt".to_owned()])]);
        let stages =
            "[[stages]]\nname = \"a\"\nprogram = \"grep\"\nfiles = [\"x\"]\nsettle = \"any\"";
        let (job, files) = read(stages).unwrap();
        assert_eq!((job.stages.len(), files[0].0), (1, Some(0)));
        for bad in
            ["nmae = \"x\"", "settings = { a = 1 }", "[map]\nprogram = \"a\"\nfiles = [1]", "="]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
