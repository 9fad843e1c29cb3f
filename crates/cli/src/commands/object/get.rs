//! `ikada object get`. A download goes into a part file named after its content, is checked, and only then renamed. A
//! run that finds the part of the same content goes on where that ended.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectReader};
use ikada_api::v1::ObjectInfo;

use super::place::{last_part, one, split};
use super::put::unreadable;
use super::target::{Target, part_of};
use super::{bytes_bar, objects_under};
use crate::args::ObjectGetArgs;
use crate::failure::Failure;
use crate::render::{Screen, Terminal, plain, put};

/// How often a download that breaks off is continued without a byte of progress.
const IDLE_MAX: usize = 10;

pub(super) async fn get(
    client: &Client,
    args: ObjectGetArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if args.recursive {
        return get_many(client, &args, screen).await;
    }
    let (bucket, key) = one(&args.source)?;
    let options = GetOptions { version: args.version, ..GetOptions::default() };
    if args.target.as_deref() == Some(Path::new("-")) {
        return to_stdout(client.get_object(bucket, key, &options).await?).await;
    }
    let (target, name) = match &args.target {
        Some(path) if path.is_dir() => (Target::folder(path)?, last_part(key).to_owned()),
        Some(path) => Target::of_file(path)?,
        None => Target::of_file(Path::new(last_part(key)))?,
    };
    download(client, bucket, key, options, &target, &name).await?;
    eprintln!("{}", plain(&target.shown(&name)));
    Ok(())
}

async fn get_many(
    client: &Client,
    args: &ObjectGetArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (bucket, prefix) = split(&args.source)?;
    let folder = args.target.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = Target::folder(&folder)?;
    // What is left of a name below the folder that the prefix names.
    let cut = prefix.rfind('/').map_or(0, |slash| slash + 1);
    let objects = objects_under(client, bucket, prefix).await?;
    let mut passed = 0;
    for object in &objects {
        let Some(name) = object.key.get(cut..) else {
            let message = format!("{:?} was listed under {prefix:?}", object.key);
            return Err(Failure::failed_next(message, "look which nodes IKADA_URL names"));
        };
        if is_there(&target, name, object)? {
            passed += 1;
            continue;
        }
        target.make_folders(name)?;
        let options = GetOptions { version: Some(object.version.0), ..GetOptions::default() };
        download(client, bucket, &object.key, options, &target, name).await?;
    }
    eprintln!("{} downloaded, {passed} were there already", objects.len() - passed);
    screen.show(&ikada_api::v1::ObjectPage { objects, ..Default::default() })
}

/// Whether a file of this name has the object's content already.
fn is_there(target: &Target, name: &str, object: &ObjectInfo) -> Result<bool, Failure> {
    let Some(file) = target.open(name) else { return Ok(false) };
    let failed =
        |error: std::io::Error| Failure::failed(format!("{}: {error}", target.shown(name)));
    let same = file.metadata().map_err(failed)?.len() == object.size;
    Ok(same && digest_of_open(file).map_err(failed)? == object.digest)
}

/// Puts an object on standard output; a terminal gets what it may have of it.
pub(crate) async fn to_stdout(mut reader: ObjectReader) -> Result<(), Failure> {
    let mut terminal = Terminal::of_stdout();
    while let Some(bytes) = reader.next().await? {
        put(&terminal.show(&bytes))?;
    }
    Ok(())
}

/// Downloads into a file, going on where an earlier try ended.
pub(crate) async fn download(
    client: &Client,
    bucket: &str,
    key: &str,
    mut options: GetOptions,
    target: &Target,
    name: &str,
) -> Result<(), Failure> {
    let mut reader = client.get_object(bucket, key, &options).await?;
    let digest = reader.digest.clone();
    let part = part_of(name, &digest);
    let failed =
        |error: std::io::Error| Failure::failed(format!("{}: {error}", target.shown(&part)));
    let mut file = target.append(&part)?;
    let mut have = file.metadata().map_err(failed)?.len();
    let bar = bytes_bar(reader.left, last_part(key));
    let mut idle = 0;
    loop {
        if have > 0 && reader.left > 0 {
            options = GetOptions { from: have, if_match: Some(digest.clone()), ..options };
            reader = match client.get_object(bucket, key, &options).await {
                Ok(reader) => reader,
                // The part holds all, and more cannot be asked for.
                Err(Error::Refused(problem)) if problem.status == 416 => break,
                Err(error) => return Err(error.into()),
            };
        }
        let before = have;
        let message = match append(&mut reader, &mut file, &mut have, &bar).await {
            Ok(()) => break,
            Err(Failure::Unavailable { message, .. }) => message,
            Err(failure) => return Err(failure),
        };
        idle = if have > before { 0 } else { idle + 1 };
        if idle > IDLE_MAX {
            let next = format!("run the command again: it goes on from {}", target.shown(&part));
            return Err(Failure::Unavailable { message, next });
        }
        eprintln!("{}; going on", plain(&message));
    }
    bar.finish_and_clear();
    file.sync_all().map_err(failed)?;
    file.rewind().map_err(failed)?;
    if digest_of_open(file).map_err(failed)? != digest {
        target.remove(&part)?;
        let message = format!("{bucket}/{key}: the bytes that arrived have another digest");
        return Err(Failure::failed_next(message, "run the command again"));
    }
    target.rename(&part, name)
}

async fn append(
    reader: &mut ObjectReader,
    file: &mut File,
    have: &mut u64,
    bar: &indicatif::ProgressBar,
) -> Result<(), Failure> {
    while let Some(bytes) = reader.next().await? {
        file.write_all(&bytes).map_err(|error| Failure::failed(format!("writing: {error}")))?;
        *have += bytes.len() as u64;
        bar.set_position(*have);
    }
    Ok(())
}

/// BLAKE3 digest of a file of the user's own in hex.
pub(crate) fn digest_of(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    digest_of_open(file).map_err(|error| unreadable(path, &error))
}

fn digest_of_open(file: File) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}
