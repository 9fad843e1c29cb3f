//! `ikada object put`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::{ObjectInfo, ObjectPage};

use super::parts::{self, PARTED_FROM_BYTES};
use super::place::{content_type, last_part, split};
use super::spool::Spool;
use super::{bytes_bar, objects_under};
use crate::args::ObjectPutArgs;
use crate::failure::Failure;
use crate::render::Screen;

/// How often a bar moves.
pub(super) const BEAT: Duration = Duration::from_millis(100);

pub(super) async fn put(
    client: &Client,
    args: ObjectPutArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (bucket, key) = split(&args.target)?;
    if args.recursive {
        return put_folder(client, &args, bucket, key, screen).await;
    }
    let stdin = args.source == Path::new("-");
    let source = match stdin {
        true => ObjectSource::Open(Arc::new(Spool::of_stdin()?)),
        false if args.source.is_dir() => {
            let shown = args.source.display();
            return Err(Failure::usage(format!("{shown} is a folder; add --recursive")));
        }
        false => ObjectSource::File(args.source.clone()),
    };
    let name = args.source.file_name().map(|name| name.to_string_lossy().into_owned());
    let key = match (key.is_empty() || key.ends_with('/'), stdin, name) {
        (true, false, Some(name)) => format!("{key}{name}"),
        (true, ..) => return Err(Failure::usage("name the object: BUCKET/KEY")),
        (false, ..) => key.to_owned(),
    };
    let shown = upload(client, &args, bucket, &key, source).await?;
    screen.show(&shown)
}

async fn upload(
    client: &Client,
    args: &ObjectPutArgs,
    bucket: &str,
    key: &str,
    source: ObjectSource,
) -> Result<ObjectInfo, Failure> {
    let sent = Arc::new(AtomicU64::new(0));
    let kind = args.content_type.clone();
    let options = PutOptions {
        content_type: Some(kind.unwrap_or_else(|| content_type(key).to_owned())),
        if_absent: args.if_absent,
        if_match: args.if_match.clone(),
        digest: None,
        progress: Some(sent.clone()),
    };
    let shown: &Path = match &source {
        ObjectSource::File(path) => path,
        _ => Path::new(key),
    };
    let (_, length) = source.reader().map_err(|error| unreadable(shown, &error))?;
    if length >= PARTED_FROM_BYTES
        && let Some(stored) = parts::put(client, (bucket, key), &source, &options).await?
    {
        return Ok(stored);
    }
    let bar = bytes_bar(length, last_part(key));
    let sending = client.put_object(bucket, key, &source, &options);
    tokio::pin!(sending);
    let outcome = loop {
        tokio::select! {
            outcome = &mut sending => break outcome,
            () = tokio::time::sleep(BEAT) => bar.set_position(sent.load(Ordering::Relaxed)),
        }
    };
    bar.finish_and_clear();
    Ok(outcome?)
}

/// Uploads a folder. What is there with the same content is passed over, so that a second run goes on.
async fn put_folder(
    client: &Client,
    args: &ObjectPutArgs,
    bucket: &str,
    prefix: &str,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let prefix = match prefix.is_empty() || prefix.ends_with('/') {
        true => prefix.to_owned(),
        false => format!("{prefix}/"),
    };
    let mut files = Vec::new();
    gather(&args.source, "", &mut files)?;
    let there = objects_under(client, bucket, &prefix).await?;
    let there: BTreeMap<&str, &ObjectInfo> =
        there.iter().map(|object| (object.key.as_str(), object)).collect();
    let (mut stored, mut passed) = (Vec::new(), 0);
    for (relative, path) in files {
        let key = format!("{prefix}{relative}");
        if let Some(known) = there.get(key.as_str())
            && is_same(&path, known)?
        {
            passed += 1;
            continue;
        }
        stored.push(upload(client, args, bucket, &key, ObjectSource::File(path)).await?);
    }
    eprintln!("{} uploaded, {passed} were there already", stored.len());
    screen.show(&ObjectPage { objects: stored, ..Default::default() })
}

/// All files below a folder, with their paths relative to it. Links are not followed.
fn gather(folder: &Path, below: &str, files: &mut Vec<(String, PathBuf)>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| unreadable(folder, &error);
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name().into_string().map_err(|name| {
            Failure::failed(format!("{}: the name is not UTF-8", Path::new(&name).display()))
        })?;
        let relative = format!("{below}{name}");
        if kind.is_dir() {
            gather(&entry.path(), &format!("{relative}/"), files)?;
        } else if kind.is_file() {
            files.push((relative, entry.path()));
        }
    }
    Ok(())
}

fn is_same(path: &Path, known: &ObjectInfo) -> Result<bool, Failure> {
    let length = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    Ok(length == known.size && super::get::digest_of(path)? == known.digest)
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}
