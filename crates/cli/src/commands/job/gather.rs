//! Inputs of a job: local files, uploaded first unless they are there, objects that are stored, and addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::{ObjectInfo, WorkInput};
use ikada_api::{Client, abreast};

use super::address::{check_count, inputs_at};
use super::cut::{Afar, Cut, parts, parts_of_object};
use super::pattern::files;
use crate::commands::object::{digest_of, objects_under, split};
use crate::failure::Failure;
use crate::render::bytes_bar;

/// What stands before the name of a stored object.
const OBJECT: &str = "object:";
/// Files that are uploaded at one time: a small one waits for the nodes more than it sends.
const UPLOADS_ABREAST: usize = 8;
/// How often the bar moves.
const BEAT: Duration = Duration::from_millis(100);
/// How much of a digest names the place of an uploaded file.
const PLACE_DIGITS: usize = 32;

/// The inputs that some patterns mean, one task each.
pub(super) async fn gather(
    client: &Client,
    patterns: &[String],
    bucket: &str,
    cut: Cut,
) -> Result<Vec<WorkInput>, Failure> {
    let mut inputs = Vec::new();
    let mut paths = Vec::new();
    for pattern in patterns {
        match pattern.strip_prefix(OBJECT) {
            Some(place) => inputs.extend(stored(client, pattern, place, cut).await?),
            None if pattern.contains("://") => inputs.extend(inputs_at(pattern, cut).await?),
            None => paths.extend(files(pattern)?),
        }
        check_count(pattern, inputs.len() + paths.len())?;
    }
    // Before anything is sent: it may be much.
    let mut files = Vec::with_capacity(paths.len());
    let mut count = inputs.len();
    for path in paths {
        let parts = parts(&path, cut)?;
        count += parts.len();
        check_count(&path.display().to_string(), count)?;
        files.push((path, parts));
    }
    inputs.extend(upload_all(client, bucket, files).await?);
    Ok(inputs)
}

/// A file and where it is cut.
type CutFile = (PathBuf, Vec<(u64, u64)>);

/// Uploads files, some at one time, and shows how much is there.
async fn upload_all(
    client: &Client,
    bucket: &str,
    files: Vec<CutFile>,
) -> Result<Vec<WorkInput>, Failure> {
    let size_of = |path: &Path| path.metadata().map_or(0, |about| about.len());
    let (all, done) = (files.len(), AtomicUsize::new(0));
    let bar = bytes_bar(Some(files.iter().map(|(path, _)| size_of(path)).sum()));
    let sent: Vec<Arc<AtomicU64>> = files.iter().map(|_| Arc::default()).collect();
    let send = async |(place, (path, parts)): (usize, CutFile)| -> Result<_, Failure> {
        let object = upload(client, bucket, &path, &sent[place]).await?;
        // Also of what was there already.
        sent[place].store(size_of(&path), Ordering::Relaxed);
        done.fetch_add(1, Ordering::Relaxed);
        let name = file_name(&path);
        let part = |part| part_of(&object, &name, part);
        Ok(parts.into_iter().map(part).collect::<Vec<WorkInput>>())
    };
    let uploads = abreast(UPLOADS_ABREAST, files.into_iter().enumerate().map(send));
    let mut uploads = std::pin::pin!(uploads);
    let inputs = loop {
        tokio::select! {
            inputs = &mut uploads => break inputs,
            () = tokio::time::sleep(BEAT) => {
                bar.set_message(format!("upload {}/{all}", done.load(Ordering::Relaxed)));
                bar.set_position(sent.iter().map(|sent| sent.load(Ordering::Relaxed)).sum());
            }
        }
    };
    bar.finish_and_clear();
    Ok(inputs?.into_iter().flatten().collect())
}

/// Objects whose names begin so, or their parts: line ends are looked for here, and each task reads its part.
async fn stored(
    client: &Client,
    pattern: &str,
    place: &str,
    cut: Cut,
) -> Result<Vec<WorkInput>, Failure> {
    let (bucket, beginning) = split(place)?;
    let found = objects_under(client, bucket, beginning).await?;
    if found.is_empty() {
        return Err(Failure::usage(format!("--input {pattern}: no object is named so")));
    }
    if cut == Cut::Whole {
        return Ok(found.iter().map(input_of).collect());
    }
    let mut inputs = Vec::new();
    for object in &found {
        let name = input_of(object).name;
        let parts = parts_of_object(&Afar::Kept(client, object), cut).await?;
        inputs.extend(parts.into_iter().map(|part| part_of(object, &name, part)));
        check_count(pattern, inputs.len())?;
    }
    Ok(inputs)
}

/// A part of an object, which is all of it if it has nothing more.
fn part_of(object: &ObjectInfo, name: &str, (offset, length): (u64, u64)) -> WorkInput {
    let whole = offset == 0 && length == object.size;
    WorkInput {
        name: if whole { name.to_owned() } else { format!("{offset:012}-{name}") },
        offset: (!whole).then_some(offset),
        length: (!whole).then_some(length),
        ..input_of(object)
    }
}

fn input_of(object: &ObjectInfo) -> WorkInput {
    WorkInput {
        name: object.key.rsplit('/').next().unwrap_or_default().to_owned(),
        bucket: Some(object.bucket.clone()),
        key: Some(object.key.clone()),
        version: Some(object.version),
        digest: Some(object.digest.clone()),
        ..WorkInput::default()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Uploads a file to a place named after its content; what is there is not sent again. `sent` rises meanwhile.
async fn upload(
    client: &Client,
    bucket: &str,
    path: &Path,
    sent: &Arc<AtomicU64>,
) -> Result<ObjectInfo, Failure> {
    let file = path.to_path_buf();
    let digest = tokio::task::spawn_blocking(move || digest_of(&file)).await;
    let digest =
        digest.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))??;
    let key = format!("{}/{}", &digest[..PLACE_DIGITS], file_name(path));
    let there = client.objects(bucket, &key, None, false).await?.objects;
    if let Some(known) = there.into_iter().find(|known| known.key == key && known.digest == digest)
    {
        return Ok(known);
    }
    let (digest, progress) = (Some(digest), Some(sent.clone()));
    let options = PutOptions { digest, progress, ..PutOptions::default() };
    let source = ObjectSource::File(path.to_path_buf());
    Ok(client.put_object(bucket, &key, &source, &options).await?)
}
