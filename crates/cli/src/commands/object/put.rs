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
use super::place::{content_type, folder, last_part, split};
use super::several::each;
use super::spool::Spool;
use super::tally::Counted;
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
    if args.recursive {
        return put_folder(client, args, screen).await;
    }
    let (bucket, key) = split(&args.target)?;
    let stdin = args.source == Path::new("-");
    let source = match stdin {
        true => ObjectSource::Open(Arc::new(Spool::of_stdin()?)),
        false => source_of(&args.source)?,
    };
    let name = args.source.file_name().map(|name| name.to_string_lossy().into_owned());
    let key = match (key.is_empty() || key.ends_with('/'), stdin, name) {
        (true, false, Some(name)) => format!("{key}{name}"),
        (true, ..) => return Err(Failure::usage("name the object: BUCKET/KEY")),
        (false, ..) => key.to_owned(),
    };
    let shown = upload(client, &args, (bucket, &key), source, &Counted::Alone).await?;
    screen.show(&shown)
}

/// What a path names. How much a pipe, a device or a file of `/proc` holds is known when it was read, so that these are kept
/// like standard input.
fn source_of(path: &Path) -> Result<ObjectSource, Failure> {
    let found = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if found.is_dir() {
        return Err(Failure::usage(format!("{} is a folder; add --recursive", path.display())));
    }
    match found.is_file() && found.len() > 0 {
        true => Ok(ObjectSource::File(path.to_path_buf())),
        false => Ok(ObjectSource::Open(Arc::new(Spool::of_path(path)?))),
    }
}

async fn upload(
    client: &Client,
    args: &ObjectPutArgs,
    (bucket, key): (&str, &str),
    source: ObjectSource,
    counted: &Counted,
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
        && let Some(stored) = parts::put(client, (bucket, key), &source, &options, counted).await?
    {
        return Ok(stored);
    }
    let mut tally = counted.tally(length, last_part(key));
    let sending = client.put_object(bucket, key, &source, &options);
    tokio::pin!(sending);
    let outcome = loop {
        tokio::select! {
            outcome = &mut sending => break outcome,
            () = tokio::time::sleep(BEAT) => tally.set(sent.load(Ordering::Relaxed).min(length)),
        }
    };
    if outcome.is_ok() {
        tally.set(length);
    }
    tally.end();
    Ok(outcome?)
}

/// Uploads a folder. What is there with the same content is passed over, so that a second run goes on.
async fn put_folder(
    client: &Client,
    args: ObjectPutArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (bucket, key) = split(&args.target)?;
    let (bucket, prefix) = (bucket.to_owned(), folder(key));
    let mut found = Found::default();
    gather(&args.source, "", &mut found)?;
    for path in &found.others {
        eprintln!("{}: no file and no folder, passed over", path.display());
    }
    let there = objects_under(client, &bucket, &prefix).await?.into_iter();
    let mut there: BTreeMap<String, ObjectInfo> =
        there.map(|object| (object.key.clone(), object)).collect();
    let lengths = found.files.iter().filter_map(|(_, path)| std::fs::metadata(path).ok());
    let bar = bytes_bar(lengths.map(|file| file.len()).sum(), last_part(key));
    let (args, counted) = (Arc::new(args), Counted::Together(bar.clone()));
    let stored = each(found.files, |(relative, path)| {
        let key = format!("{prefix}{relative}");
        let known = there.remove(&key);
        let (client, args, bucket) = (client.clone(), args.clone(), bucket.clone());
        let counted = counted.clone();
        async move {
            if let Some(known) = known
                && is_same(&path, &known)?
            {
                counted.tally(known.size, &key).set(known.size);
                return Ok(None);
            }
            upload(&client, &args, (&bucket, &key), source_of(&path)?, &counted).await.map(Some)
        }
    });
    let stored = stored.await;
    bar.finish_and_clear();
    let all = stored?;
    let passed = all.iter().filter(|stored| stored.is_none()).count();
    let stored: Vec<ObjectInfo> = all.into_iter().flatten().collect();
    eprintln!("{} uploaded, {passed} were there already", stored.len());
    screen.show(&ObjectPage { objects: stored, ..Default::default() })
}

/// What is in a folder.
#[derive(Default)]
struct Found {
    /// Files, with their paths relative to the folder.
    files: Vec<(String, PathBuf)>,
    /// Links and what else is not uploaded.
    others: Vec<PathBuf>,
}

/// All that is below a folder. Links are not followed.
fn gather(folder: &Path, below: &str, found: &mut Found) -> Result<(), Failure> {
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
            gather(&entry.path(), &format!("{relative}/"), found)?;
        } else if kind.is_file() {
            found.files.push((relative, entry.path()));
        } else {
            found.others.push(entry.path());
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
