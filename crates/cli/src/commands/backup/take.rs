//! `ikada cluster backup`: the state of a running cluster goes into a file or an object store.
//!
//! Promise: what stands under the name in the end is a whole backup: it was read and checked before it got its name.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use ikada_api::Client;
use ikada_api::s3::{Door, StoreError, StorePlace, Upload};
use ikada_node::offline::{Backup, BackupError};
use tokio::sync::mpsc;

use super::report::{ObjectsReport, Report, ShardReport};
use super::store::open_store;
use super::stream::{PIECES_AHEAD, StreamReader};
use crate::args::{BackupArgs, BackupPlace};
use crate::failure::Failure;
use crate::local::until_interrupted;
use crate::render::{Screen, bytes_bar};

pub(crate) async fn take(
    client: &Client,
    args: &BackupArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let (bytes, checked) = match &args.place {
        BackupPlace::File(file) => into_file(client, file).await?,
        BackupPlace::Store(place) => into_store(client, place, args.part_mib).await?,
    };
    checked.show(bytes, args.place.to_string(), screen)
}

/// A backup that was read to its end.
struct Checked {
    backup: Backup<Box<dyn Read + Send>>,
    pieces: u64,
    piece_bytes: u64,
}

impl Checked {
    fn read(from: Box<dyn Read + Send>) -> Result<Checked, BackupError> {
        let mut backup = Backup::open(from)?;
        let (pieces, piece_bytes) = backup.check_rest()?;
        Ok(Checked { backup, pieces, piece_bytes })
    }

    fn show(&self, bytes: u64, place: String, screen: &Screen) -> Result<(), Failure> {
        let cluster = format!("{:016x}", self.backup.cluster);
        eprintln!("{bytes} bytes, cluster {cluster}");
        let (pieces, piece_bytes) = (self.pieces, self.piece_bytes);
        let report = Report {
            made: Some(place),
            cluster: Some(cluster),
            epoch: None,
            bytes: Some(bytes),
            shards: ShardReport::of(&self.backup.states),
            objects: Some(ObjectsReport { pieces, bytes: piece_bytes, missing: 0 }),
        };
        report.show(screen)
    }
}

async fn into_file(client: &Client, file: &Path) -> Result<(u64, Checked), Failure> {
    let shown = file.display();
    let failed = |error: std::io::Error| Failure::failed(format!("{shown}: {error}"));
    if file.exists() {
        return Err(Failure::usage(format!("{shown} exists already; name another file")));
    }
    // Under another name until it is whole.
    let part = file.with_extension("part");
    let mut out = BufWriter::new(File::create(&part).map_err(failed)?);
    let bar = bytes_bar(None);
    let bytes = client
        .backup(async |piece| {
            bar.inc(piece.len() as u64);
            out.write_all(&piece).map_err(failed)
        })
        .await;
    bar.finish_and_clear();
    let bytes = bytes?;
    let written = out.into_inner().map_err(|error| failed(error.into_error()))?;
    written.sync_all().map_err(failed)?;
    // Read back: a stream that ended early must not pass for a backup.
    let read = BufReader::new(File::open(&part).map_err(failed)?);
    let checked = Checked::read(Box::new(read)).map_err(|error| failed_check(&error))?;
    std::fs::rename(&part, file).map_err(failed)?;
    Ok((bytes, checked))
}

async fn into_store(
    client: &Client,
    place: &StorePlace,
    part_mib: usize,
) -> Result<(u64, Checked), Failure> {
    let store = open_store(place)?;
    match store.look(place).await {
        Ok(None) => {}
        Ok(Some(_)) => {
            return Err(Failure::usage(format!("{place} exists already; name another object")));
        }
        // A key that may only write. The store itself refuses to replace an object; Google's needs the look.
        Err(error) if error.is_denied() && place.door != Door::Google => {}
        Err(error) => return Err(error.into()),
    }
    let mut upload = Upload::begin(store, place.clone(), part_mib << 20);
    let outcome = until_interrupted("nothing is kept", send(client, &mut upload)).await;
    if outcome.is_err()
        && let Err(error) = upload.abort().await
    {
        eprintln!("ikada: parts of the unfinished upload may be left in the store: {error}");
    }
    outcome
}

/// Sends the backup on as it comes; a thread reads along, and its word comes before the object gets its name.
async fn send(client: &Client, upload: &mut Upload) -> Result<(u64, Checked), Failure> {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let reader = Box::new(StreamReader::new(receiver));
    let checking = tokio::task::spawn_blocking(move || Checked::read(reader));
    let bar = bytes_bar(None);
    let mut is_read = true;
    let sent = client
        .backup(async |piece| {
            bar.inc(piece.len() as u64);
            is_read = is_read && sender.send(piece.clone()).await.is_ok();
            match is_read {
                true => upload.push(piece).await.map_err(Failure::from),
                false => Err(Failure::failed("what comes is no backup")),
            }
        })
        .await;
    bar.finish_and_clear();
    drop(sender);
    let checked = checking.await.map_err(|error| Failure::failed(error.to_string()))?;
    let bytes = match (&checked, is_read) {
        (Err(error), false) => return Err(failed_check(error)),
        _ => sent?,
    };
    let checked = checked.map_err(|error| failed_check(&error))?;
    upload.finish().await?;
    Ok((bytes, checked))
}

fn failed_check(error: &BackupError) -> Failure {
    Failure::failed(error.to_string())
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unavailable { .. } => Failure::Unavailable {
                message,
                next: "is AWS_ENDPOINT_URL (or AWS_REGION), for az:// AZURE_STORAGE_ENDPOINT, the right one?".into(),
            },
            StoreError::Refused { .. } => Failure::Refused {
                message,
                next: Some("may this key read and write there? see AWS_ACCESS_KEY_ID, for az:// AZURE_STORAGE_ACCOUNT".into()),
            },
        }
    }
}
