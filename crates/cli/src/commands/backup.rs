//! `ikada cluster backup|restore|recover`.
//!
//! A backup is taken from a running cluster. Restore and recover make the data folder of a new cluster of one node,
//! offline; it then grows by `ikada cluster add`. Neither touches a running cluster.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use ikada_api::Client;
use ikada_api::state::{Digest, Shard};
use ikada_node::offline::{Backup, BackupError, Refounding, read_offline, refound};
use indicatif::{ProgressBar, ProgressStyle};

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
    let bar = bytes_bar(None);
    let bytes = client
        .backup(|piece| {
            bar.inc(piece.len() as u64);
            out.write_all(piece)
        })
        .await;
    bar.finish_and_clear();
    let bytes = bytes?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    // Read back: a stream that ended early must not pass for a backup.
    let read = BufReader::new(File::open(&part).map_err(failed)?);
    let bad = |error: BackupError| Failure::failed(error.to_string());
    let mut whole = Backup::open(read).map_err(bad)?;
    let (pieces, piece_bytes) = whole.check_rest().map_err(bad)?;
    std::fs::rename(&part, &args.file).map_err(failed)?;
    eprintln!("{bytes} bytes, cluster {:016x}", whole.cluster);
    show_states(&whole.states);
    show_pieces(pieces, piece_bytes);
    Ok(())
}

fn show_states(states: &[Shard]) {
    for (shard, state) in states.iter().enumerate() {
        let (at, hash) = (position(state.applied()), state.hash());
        println!("shard {shard} at {at}: state hash {hash:016x}");
    }
}

fn show_pieces(pieces: u64, bytes: u64) {
    println!("objects: {bytes} bytes in {pieces} pieces");
}

/// Counts bytes on a terminal.
fn bytes_bar(length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => {
            (ProgressBar::new(length), "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta}")
        }
        None => (ProgressBar::no_length(), "{spinner} {bytes}, {bytes_per_sec}, {elapsed}"),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    let file =
        File::open(&args.file).map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    let bar = bytes_bar(file.metadata().ok().map(|facts| facts.len()));
    let bad = |error: BackupError| Failure::failed(format!("{shown}: {error}"));
    let mut backup = Backup::open(bar.wrap_read(BufReader::new(file))).map_err(bad)?;
    let wish = wish(args.node_id, &args.peer_advertise, &args.advertise, args.epoch);
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
    let (cluster, epoch) = made.map_err(|error| Failure::failed(error.to_string()))?;
    show_states(&states);
    show_pieces(pieces, bytes);
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
    let mut left = Leftover::of(&args.data, &states);
    let (cluster, epoch) = refound(&args.to, &wish, &states, &mut || left.next_piece())
        .map_err(|error| Failure::failed(error.to_string()))?;
    if left.missing > 0 {
        eprintln!(
            "{} pieces of objects are not on this disk: those objects cannot be read",
            left.missing
        );
    }
    eprintln!(
        "cluster {:016x} is given up: its nodes cannot join the new one; keep node {}'s old folder until all is well",
        old.cluster, old.node
    );
    tell_next(&args.to, cluster, epoch);
    Ok(())
}

/// The bytes of objects that a disk still has.
struct Leftover {
    folder: PathBuf,
    wanted: std::collections::btree_set::IntoIter<Digest>,
    missing: u64,
}

impl Leftover {
    fn of(folder: &Path, states: &[Shard]) -> Leftover {
        let all = states.iter().flat_map(|state| state.references(None, usize::MAX).digests);
        let wanted = all.collect::<BTreeSet<_>>().into_iter();
        Leftover { folder: folder.to_owned(), wanted, missing: 0 }
    }

    /// The next piece that is there, whole.
    fn next_piece(&mut self) -> Result<Option<(Digest, Vec<u8>)>, String> {
        for digest in self.wanted.by_ref() {
            let name = digest.to_string();
            let file = self.folder.join("blob").join(&name[..2]).join(&name);
            match std::fs::read(&file) {
                Ok(bytes) if *blake3::hash(&bytes).as_bytes() == digest.0 => {
                    return Ok(Some((digest, bytes)));
                }
                Ok(_) => self.missing += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.missing += 1,
                Err(error) => return Err(format!("{}: {error}", file.display())),
            }
        }
        Ok(None)
    }
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
