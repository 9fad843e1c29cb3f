//! `ikada cluster restore`: a backup becomes the data folder of a new cluster.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use ikada_api::s3::{Download, StoreError, StorePlace};
use ikada_api::state::Shard;
use ikada_node::offline::{Backup, BackupError, Refounded, refound};
use indicatif::ProgressBar;
use tokio::sync::mpsc;

use super::found::{Ground, wish};
use super::report::{ObjectsReport, Report, ShardReport};
use super::store::open_store;
use super::stream::{PIECES_AHEAD, StreamReader};
use crate::args::{BackupPlace, RestoreArgs};
use crate::failure::Failure;
use crate::render::{Screen, bytes_bar};

/// What is told of it, the new cluster, and the states that it begins with.
type Made = (Report, Refounded, Vec<Shard>);

pub(crate) async fn restore(args: RestoreArgs, screen: &Screen) -> Result<(), Failure> {
    let ground = Ground::look(&args.into).await?;
    let args = Arc::new(args);
    let (report, made, states) = match &args.place {
        BackupPlace::File(file) => {
            let shown = file.display();
            let opened = File::open(file);
            let file = opened.map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
            let bar = bytes_bar(file.metadata().ok().map(|facts| facts.len()));
            make(&args, &bar, BufReader::new(file))?
        }
        BackupPlace::Store(place) => from_store(place.clone(), args.clone()).await?,
    };
    ground.finish("Restore", &args.data, &args.into, &made, &states).await?;
    report.show(screen)
}

/// Reads from a store while a thread makes the folder.
async fn from_store(place: StorePlace, args: Arc<RestoreArgs>) -> Result<Made, Failure> {
    let store = open_store(&place)?;
    let download = Download::begin(store, place.clone()).await?;
    let mut download =
        download.ok_or_else(|| Failure::failed(format!("{place}: there is no such object")))?;
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let bar = bytes_bar(Some(download.size()));
    let making =
        tokio::task::spawn_blocking(move || make(&args, &bar, StreamReader::new(receiver)));
    let fed = feed(&mut download, &sender).await;
    drop(sender);
    let made = making.await.map_err(|error| Failure::failed(error.to_string()))?;
    fed?;
    made
}

/// Hands bytes on until there are no more, or nobody reads them: whoever stops has a reason, which counts.
async fn feed(download: &mut Download, to: &mpsc::Sender<Bytes>) -> Result<(), StoreError> {
    while let Some(bytes) = download.next().await? {
        if to.send(bytes).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn make(args: &RestoreArgs, bar: &ProgressBar, from: impl Read) -> Result<Made, Failure> {
    let bad = |error: BackupError| Failure::failed(format!("{}: {error}", args.place));
    let mut backup = Backup::open(bar.wrap_read(from)).map_err(bad)?;
    let (peer, client) = (&args.peer_advertise, &args.advertise);
    let wish = wish(args.node_id, peer, client, args.epoch, &args.into)?;
    let states = std::mem::take(&mut backup.states);
    let (mut pieces, mut bytes) = (0, 0);
    let mut next = || {
        let piece = backup.next_piece().map_err(|error| error.to_string())?;
        pieces += u64::from(piece.is_some());
        bytes += piece.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64);
        Ok(piece)
    };
    let made = refound(&args.data, &wish, &states, &mut next);
    bar.finish_and_clear();
    let made = made.map_err(|error| Failure::failed(error.to_string()))?;
    let report = Report {
        made: Some(args.data.display().to_string()),
        cluster: Some(format!("{:016x}", made.plan.cluster)),
        epoch: Some(made.epoch),
        bytes: None,
        shards: ShardReport::of(&states),
        objects: Some(ObjectsReport { pieces, bytes, missing: 0 }),
    };
    Ok((report, made, states))
}
