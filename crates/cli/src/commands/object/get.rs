//! `ikada object get`. A download goes into a part file named after its content, is checked, and only then renamed. A
//! run that finds the part of the same content goes on where that ended.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectReader};
use ikada_api::v1::{ObjectInfo, ObjectPage};

use super::place::{last_part, one, split};
use super::put::unreadable;
use super::several::each;
use super::stdout::to_stdout;
use super::tally::{Counted, Tally};
use super::target::{Target, part_of};
use super::{bytes_bar, is_gone, objects_in};
use crate::args::ObjectGetArgs;
use crate::failure::Failure;
use crate::render::{Screen, plain};

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
        return to_stdout(client, bucket, key, options).await;
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

/// What became of one object of a folder.
enum Got {
    Fetched,
    There,
    /// It was removed after it was listed.
    Gone,
}

async fn get_many(
    client: &Client,
    args: &ObjectGetArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (bucket, prefix) = split(&args.source)?;
    let folder = args.target.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = Arc::new(Target::folder(&folder)?);
    // What is left of a name below the folder that the prefix names.
    let cut = prefix.rfind('/').map_or(0, |slash| slash + 1);
    let objects = objects_in(client, bucket, prefix).await?;
    let bar = bytes_bar(objects.iter().map(|object| object.size).sum(), last_part(prefix));
    let got = each(objects.clone(), |object| {
        let (client, target) = (client.clone(), target.clone());
        let (bucket, counted) = (bucket.to_owned(), Counted::Together(bar.clone()));
        async move { get_one(&client, &bucket, &object, cut, &target, &counted).await }
    });
    let got = got.await;
    bar.finish_and_clear();
    let (mut fetched, mut passed, mut shown) = (0, 0, Vec::new());
    for (got, object) in got?.into_iter().zip(objects) {
        match got {
            Got::Fetched => fetched += 1,
            Got::There => passed += 1,
            Got::Gone => {
                let name = format!("{bucket}/{}", object.key);
                eprintln!("{}: removed meanwhile, passed over", plain(&name));
                continue;
            }
        }
        shown.push(object);
    }
    eprintln!("{fetched} downloaded, {passed} were there already");
    screen.show(&ObjectPage { objects: shown, ..Default::default() })
}

/// One object of a folder.
async fn get_one(
    client: &Client,
    bucket: &str,
    object: &ObjectInfo,
    cut: usize,
    target: &Target,
    counted: &Counted,
) -> Result<Got, Failure> {
    let Some(name) = object.key.get(cut..) else {
        let message = format!("{:?} was listed in another folder", object.key);
        return Err(Failure::failed_next(message, "look which nodes IKADA_URL names"));
    };
    if is_there(target, name, object)? {
        counted.tally(object.size, name).set(object.size);
        return Ok(Got::There);
    }
    let options = GetOptions { version: Some(object.version.0), ..GetOptions::default() };
    let reader = match client.get_object(bucket, &object.key, &options).await {
        Err(error) if is_gone(&error) => {
            counted.tally(object.size, name).set(object.size);
            return Ok(Got::Gone);
        }
        reader => reader?,
    };
    target.make_folders(name)?;
    let mut tally = counted.tally(object.size, last_part(name));
    let from = (bucket, object.key.as_str());
    let received = receive(client, from, options, reader, (target, name), &mut tally).await;
    tally.end();
    received.map(|()| Got::Fetched)
}

/// Whether a file of this name has the object's content already.
fn is_there(target: &Target, name: &str, object: &ObjectInfo) -> Result<bool, Failure> {
    let Some(file) = target.open(name) else { return Ok(false) };
    let failed =
        |error: std::io::Error| Failure::failed(format!("{}: {error}", target.shown(name)));
    let same = file.metadata().map_err(failed)?.len() == object.size;
    Ok(same && digest_of_open(file).map_err(failed)? == object.digest)
}

/// Downloads into a file, going on where an earlier try ended.
pub(crate) async fn download(
    client: &Client,
    bucket: &str,
    key: &str,
    options: GetOptions,
    target: &Target,
    name: &str,
) -> Result<(), Failure> {
    let reader = client.get_object(bucket, key, &options).await?;
    let mut tally = Counted::Alone.tally(reader.left, last_part(key));
    let received =
        receive(client, (bucket, key), options, reader, (target, name), &mut tally).await;
    tally.end();
    received
}

/// Puts what comes into a file, asking for the rest as often as it breaks off.
async fn receive(
    client: &Client,
    (bucket, key): (&str, &str),
    mut options: GetOptions,
    mut reader: ObjectReader,
    (target, name): (&Target, &str),
    tally: &mut Tally,
) -> Result<(), Failure> {
    let digest = reader.digest.clone();
    let part = part_of(name, &digest);
    let failed =
        |error: std::io::Error| Failure::failed(format!("{}: {error}", target.shown(&part)));
    let mut file = target.append(&part)?;
    let mut have = file.metadata().map_err(failed)?.len();
    tally.begin(have);
    let mut idle = Idle::default();
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
        match append(&mut reader, &mut file, &mut have, tally).await {
            Ok(()) => break,
            Err(Failure::Unavailable { message, .. }) => idle.judge(message, have, || {
                format!("run the command again: it goes on from {}", target.shown(&part))
            })?,
            Err(failure) => return Err(failure),
        }
    }
    file.sync_all().map_err(failed)?;
    file.rewind().map_err(failed)?;
    if digest_of_open(file).map_err(failed)? != digest {
        target.remove(&part)?;
        return Err(other_bytes(bucket, key));
    }
    target.rename(&part, name)
}

/// How often in a row a download came no further.
#[derive(Default)]
pub(super) struct Idle {
    times: usize,
    had: u64,
}

impl Idle {
    /// A download broke off: says so, or that it is given up.
    pub(super) fn judge(
        &mut self,
        message: String,
        have: u64,
        next: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.times = if have > self.had { 0 } else { self.times + 1 };
        self.had = have;
        if self.times > IDLE_MAX {
            return Err(Failure::Unavailable { message, next: next() });
        }
        eprintln!("{}; going on", plain(&message));
        Ok(())
    }
}

/// Whoever answered sent something else than it said.
pub(super) fn other_bytes(bucket: &str, key: &str) -> Failure {
    let message = format!("{bucket}/{key}: the bytes that arrived have another digest");
    Failure::failed_next(message, "run the command again")
}

async fn append(
    reader: &mut ObjectReader,
    file: &mut File,
    have: &mut u64,
    tally: &mut Tally,
) -> Result<(), Failure> {
    while let Some(bytes) = reader.next().await? {
        file.write_all(&bytes).map_err(|error| Failure::failed(format!("writing: {error}")))?;
        *have += bytes.len() as u64;
        tally.set(*have);
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
