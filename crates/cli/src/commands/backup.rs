//! `ikada cluster backup|restore|recover`.
//!
//! A backup is taken from a running cluster. Restore and recover make the data folder of a new cluster of one node,
//! offline; it then grows by `ikada cluster add`. Neither touches a running cluster.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use ikada_api::Client;
use ikada_node::offline::{Refounding, read_backup, read_offline, refound};

use crate::args::{BackupArgs, RecoverArgs, RestoreArgs};
use crate::failure::Failure;

/// What must be typed, since acknowledged work may be lost.
const PHRASE: &str = "acknowledged work may be lost";

pub(crate) async fn backup(client: &Client, args: &BackupArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    let failed = |error: std::io::Error| Failure::failed(format!("{shown}: {error}"));
    if args.file.exists() {
        return Err(Failure::usage(format!("{shown} exists already; name another file")));
    }
    // Under another name until it is whole.
    let part = args.file.with_extension("part");
    let mut out = BufWriter::new(File::create(&part).map_err(failed)?);
    let bytes = client.backup(|piece| out.write_all(piece)).await?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    // Read back: a stream that ended early must not pass for a backup.
    let read = BufReader::new(File::open(&part).map_err(failed)?);
    let whole = read_backup(read).map_err(|error| Failure::failed(error.to_string()))?;
    std::fs::rename(&part, &args.file).map_err(failed)?;
    eprintln!("{bytes} bytes, cluster {:016x}", whole.cluster);
    for (shard, state) in whole.states.iter().enumerate() {
        println!(
            "shard {shard} at {}: state hash {:016x}",
            position(state.applied()),
            state.hash()
        );
    }
    Ok(())
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    let file =
        File::open(&args.file).map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    let backup = read_backup(BufReader::new(file))
        .map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    let wish = wish(args.node_id, &args.peer_advertise, &args.advertise, args.epoch);
    let (cluster, epoch) = refound(&args.data, &wish, &backup.states)
        .map_err(|error| Failure::failed(error.to_string()))?;
    for (shard, state) in backup.states.iter().enumerate() {
        println!(
            "shard {shard} at {}: state hash {:016x}",
            position(state.applied()),
            state.hash()
        );
    }
    tell_next(&args.data, cluster, epoch);
    Ok(())
}

pub(crate) fn recover(args: &RecoverArgs) -> Result<(), Failure> {
    let old = read_offline(&args.data).map_err(|error| Failure::failed(error.to_string()))?;
    for (shard, found) in old.shards.iter().enumerate() {
        let damage = if found.is_damaged { ", DAMAGED: it held more once" } else { "" };
        println!(
            "shard {shard}: last entry {}, known as committed up to index {}{damage}",
            position(found.last),
            found.commit
        );
    }
    if args.phrase.as_deref() != Some(PHRASE) {
        return Err(Failure::usage(format!(
            "entries that only the lost nodes held are gone, though they may have been acknowledged; if no majority can be brought back, run this again with --phrase '{PHRASE}'"
        )));
    }
    let wish = wish(args.node_id, &args.peer_advertise, &args.advertise, None);
    let states: Vec<_> = old.shards.into_iter().map(|found| found.state).collect();
    let (cluster, epoch) =
        refound(&args.to, &wish, &states).map_err(|error| Failure::failed(error.to_string()))?;
    eprintln!(
        "cluster {:016x} is given up: its nodes cannot join the new one; keep node {}'s old folder until all is well",
        old.cluster, old.node
    );
    tell_next(&args.to, cluster, epoch);
    Ok(())
}

fn wish(node: u64, peer_addr: &str, client_addr: &str, epoch: Option<u16>) -> Refounding {
    let (peer_addr, client_addr) = (peer_addr.to_owned(), client_addr.to_owned());
    Refounding { node, peer_addr, client_addr, epoch }
}

fn tell_next(folder: &Path, cluster: u64, epoch: u16) {
    let shown = folder.display();
    eprintln!(
        "new cluster {cluster:016x}, restore epoch {epoch}: every fence exceeds all older ones"
    );
    eprintln!("next: ikada server --data {shown}, then let nodes join: ikada cluster add");
}

fn position(lsn: ikada_api::state::Lsn) -> String {
    format!("{}:{}", lsn.term, lsn.index)
}
