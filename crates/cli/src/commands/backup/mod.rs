//! `ikada cluster backup|restore|recover`.
//!
//! A backup is taken from a running cluster, into a file or an object store that this command itself writes to; nodes
//! open no address that a user gives. Restore and recover make the data folder of a new cluster of one node, offline; it
//! then grows by `ikada cluster add`. Neither touches a running cluster.

mod recover;
mod restore;
mod store;
mod stream;
mod take;

use std::path::Path;

use ikada_api::state::Shard;
use ikada_node::offline::Refounding;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use recover::recover;
pub(crate) use restore::restore;
pub(crate) use store::open_store;
pub(crate) use take::take;

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
