//! Brings inputs to this machine: objects, texts, and addresses that the operator allows. All inputs of an attempt
//! together have a bound, that of the attempt's folder: they are counted as they come. Some come at one time, so that a task of
//! many small inputs does not wait for each of them in turn.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikada_api::abreast;
use ikada_api::client::{Error, GetOptions};
use ikada_api::v1::WorkInput;

use super::folder::{Folder, INPUTS};
use super::near::Objects;
use super::stores::{UrlReader, Wanted};
use crate::beneath::Beneath;
use crate::run::TaskError;

/// What the operator of this worker says about places: addresses that tasks may name, with what lies below them, and where
/// objects are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Urls {
    /// Where inputs may come from.
    pub inputs: Vec<String>,
    /// Where outputs may go. What may be read may not be written for that.
    pub outputs: Vec<String>,
    /// The data folder of a node on this machine, on whose disk pieces of objects are read.
    pub near: Option<PathBuf>,
}

/// First pause before asking again; it doubles.
pub(super) const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Code of the refusal of bytes for which too few disks have room. It is made by whoever tends them, while work waits.
const DISK_FULL: &str = "disk_full";

/// Inputs that come, or outputs that are stored, at one time for one attempt.
pub(crate) const ABREAST: usize = 8;

/// Puts all inputs into the attempt's folder.
pub(super) async fn inputs(
    objects: &Objects,
    urls: &[String],
    inputs: &[WorkInput],
    folder: &Folder,
    bytes_max: u64,
) -> Result<(), TaskError> {
    let left = AtomicU64::new(bytes_max);
    let bring = async |input: &WorkInput| -> Result<(), TaskError> {
        let mut file = Bounded::new(place(folder, &input.name)?, &left, bytes_max);
        bring_input(objects, urls, input, &mut file).await?;
        Ok(folder.hand_over_open(&file.file)?)
    };
    abreast(ABREAST, inputs.iter().map(bring)).await.map(|_: Vec<()>| ())
}

async fn bring_input(
    objects: &Objects,
    urls: &[String],
    input: &WorkInput,
    file: &mut Bounded<'_>,
) -> Result<(), TaskError> {
    match (&input.bucket, &input.key, &input.url, &input.text) {
        (Some(bucket), Some(key), ..) => {
            let options = GetOptions {
                from: input.offset.unwrap_or(0),
                version: input.version.map(|version| version.0),
                if_match: input.digest.clone(),
                ..GetOptions::default()
            };
            download(objects, bucket, key, &options, input.length, file).await
        }
        (.., Some(url), _) => copy_url(urls, url, Wanted::of(input), file).await,
        (.., Some(text)) => Ok(file.write_all(text.as_bytes())?),
        _ => Err(TaskError::give_up(format!("input {} has no source", input.name))),
    }
}

/// The file of an input, which takes what is left of the bound on all inputs.
pub(super) struct Bounded<'a> {
    pub(super) file: File,
    left: &'a AtomicU64,
    bytes_max: u64,
}

impl<'a> Bounded<'a> {
    pub(super) fn new(file: File, left: &'a AtomicU64, bytes_max: u64) -> Bounded<'a> {
        Bounded { file, left, bytes_max }
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wanted = bytes.len() as u64;
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(wanted));
        if taken.is_err() {
            let most = self.bytes_max;
            return Err(io::Error::other(format!(
                "the inputs have more than the {most} bytes that this worker gives an attempt"
            )));
        }
        let written = self.file.write(bytes);
        // What was not written is offered again.
        let unwritten = wanted - written.as_ref().map_or(0, |written| *written as u64);
        self.left.fetch_add(unwritten, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The file of an input; its name is a path below the folder and nowhere else.
fn place(folder: &Folder, name: &str) -> Result<File, TaskError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => {
            TaskError::give_up(format!("input {name:?} cannot be a file's name: {error}"))
        }
        _ => TaskError::new(format!("input {name:?}: {error}")),
    };
    let inputs = folder.handle().folder(INPUTS).map_err(failed)?;
    if let Some((folders, _)) = name.rsplit_once('/') {
        let hand_over = |made: &Beneath| folder.hand_over_open(made);
        inputs.make_folder(folders, hand_over).map_err(failed)?;
    }
    folder.move_spare(name);
    inputs.create(name).map_err(failed)
}

/// Waits before asking again, if nodes are out of reach, too busy or without room: work that is done must not be lost to
/// a busy minute or a full disk (F-12). Whoever waits stops when the claim is lost, or its time is over.
pub(super) async fn is_worth_waiting(error: &Error, pause: &mut Duration) -> bool {
    let is_full = error.code() == Some(DISK_FULL);
    if !is_full && !matches!(error, Error::Unavailable { .. } | Error::Unknown { .. }) {
        return false;
    }
    if is_full && *pause == PAUSE_FIRST {
        tracing::warn!(%error, "what a task made waits for room");
    }
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(PAUSE_MAX);
    true
}

pub(super) async fn download(
    objects: &Objects,
    bucket: &str,
    key: &str,
    options: &GetOptions,
    length: Option<u64>,
    file: &mut impl Write,
) -> Result<(), TaskError> {
    let failed =
        |error: Error| TaskError::new(format!("object {bucket}/{key} could not be read: {error}"));
    let mut left = length.unwrap_or(u64::MAX);
    let mut pause = PAUSE_FIRST;
    let mut reader = loop {
        match objects.open(bucket, key, options).await {
            Ok(reader) => break reader,
            Err(error) if is_worth_waiting(&error, &mut pause).await => {}
            Err(error) => return Err(failed(error)),
        }
    };
    while left > 0
        && let Some(bytes) = reader.next().await.map_err(failed)?
    {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&bytes[..taken])?;
        left -= taken as u64;
    }
    Ok(())
}

/// The widest rule of the operator that allows to read at an address, and what the address adds to it.
pub(super) fn rule<'a>(
    allowed: &'a [String],
    url: &'a str,
) -> Result<(&'a str, &'a str), TaskError> {
    find_rule(allowed, url).ok_or_else(|| {
        TaskError::new(format!(
            "this worker may not open {url}; its operator can allow it with --allow-url"
        ))
    })
}

/// The widest rule of the operator that allows to write at an address, and what the address adds to it.
pub(super) fn output_rule<'a>(
    allowed: &'a [String],
    url: &'a str,
) -> Result<(&'a str, &'a str), TaskError> {
    find_rule(allowed, url).ok_or_else(|| {
        TaskError::new(format!(
            "this worker may not bring outputs to {url}; its operator can allow it with --allow-output-url"
        ))
    })
}

fn find_rule<'a>(allowed: &'a [String], url: &'a str) -> Option<(&'a str, &'a str)> {
    let climbs = url.split('/').any(|part| part == "..");
    let rules = allowed.iter().filter_map(|prefix| Some((prefix, below(prefix, url)?)));
    // The widest rule: a link may lead anywhere below it.
    let rule = rules.min_by_key(|(prefix, _)| prefix.len());
    rule.filter(|_| !climbs).map(|(prefix, rest)| (prefix.as_str(), rest))
}

/// Copies what lies at an address, if the operator allows it. A file keeps its rights: it may be a program.
async fn copy_url(
    allowed: &[String],
    url: &str,
    wanted: Wanted<'_>,
    target: &mut Bounded<'_>,
) -> Result<(), TaskError> {
    let mut reader = UrlReader::open(allowed, url, wanted).await?;
    let failed = |error: io::Error| TaskError::new(format!("{url}: {error}"));
    while let Some(bytes) = reader.next().await? {
        target.write_all(&bytes).map_err(failed)?;
    }
    if let Some(file) = reader.file() {
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        target.file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(())
}

/// Opens a file of this machine, if its operator allows the address.
pub(super) fn open_local(allowed: &[String], url: &str) -> Result<File, TaskError> {
    let (prefix, rest) = rule(allowed, url)?;
    let Some(root) = local_path(prefix) else {
        return Err(TaskError::new(format!(
            "this worker opens addresses that begin with file:///, s3://, gs:// or az:// only, not {url}"
        )));
    };
    let opened = open_source(root, rest);
    let file = opened.map_err(|error| TaskError::new(format!("{url}: {error}")))?;
    Ok(file)
}

/// The operator's own path is followed wherever it leads; what a task adds to it stays below.
fn open_source(root: &str, rest: &str) -> io::Result<File> {
    match rest {
        "" => Beneath::open_own(Path::new(root)),
        rest => Beneath::at(Path::new(root))?.open_through_links(rest),
    }
}

/// The path of an address that has no host.
pub fn local_path(url: &str) -> Option<&str> {
    url.strip_prefix("file://").filter(|path| path.starts_with('/'))
}

/// What an address adds to an allowed one: `file:///srv/in` is no leave for `file:///srv/inside`.
fn below<'url>(prefix: &str, url: &'url str) -> Option<&'url str> {
    let rest = url.strip_prefix(prefix)?;
    match prefix.ends_with('/') || rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

#[cfg(test)]
#[path = "fetch_test.rs"]
mod fetch_test;
