//! `ikada cluster backup|restore|recover`.
//!
//! A backup is taken from a running cluster, into a file or an object store that this command itself writes to; nodes
//! open no address that a user gives. Restore and recover make the data folder of a new cluster of one node, offline; it
//! then grows by `ikada cluster add`. Neither touches a running cluster.

mod recover;
mod report;
mod restore;
mod store;
mod stream;
mod take;

use std::path::Path;

use ikada_node::offline::Refounding;

pub(crate) use recover::recover;
pub(crate) use restore::restore;
pub(crate) use store::open_store;
pub(crate) use take::take;

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
