//! Pieces over real peer ports: who must have them, and what becomes of them where there is no room (A2, CH-5, F-12).

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ikada_replica::state::{Digest, Member};
use ikada_store::{BLOB_BYTES_MAX, RealDisk};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::gossip_test::CLUSTER;
use super::{BlobDialling, Directory, FoundingDoor, Links, link_hello, listen};
use crate::counters::SharedCounters;
use crate::objects::{Shelf, ShelfOptions, SpreadError, Upload};

fn member(node: u64, peer_addr: String) -> Member {
    Member { node, incarnation: 7, peer_addr, client_addr: "127.0.0.1:1".to_owned() }
}

fn shelf(folder: &Path, node: u64, directory: &Directory, options: &ShelfOptions) -> Shelf {
    let disk = RealDisk::open(folder.join(format!("n{node}"))).unwrap();
    let reach = BlobDialling::new(link_hello(CLUSTER, node, 7), None, directory.clone());
    Shelf::open(disk, options, reach).unwrap()
}

/// Node 1 without a port, whose options are given, and others with one. The ports close with the set.
async fn nodes(folder: &Path, options: &ShelfOptions, others: u64) -> (Vec<Shelf>, JoinSet<()>) {
    let mut listeners = Vec::new();
    let mut members = vec![member(1, "127.0.0.1:1".to_owned())];
    for node in 2..2 + others {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        members.push(member(node, listener.local_addr().unwrap().to_string()));
        listeners.push((node, listener));
    }
    let directory = Directory::new(members);
    let mut shelves = vec![shelf(folder, 1, &directory, options)];
    let mut ports = JoinSet::new();
    for (node, listener) in listeners {
        let shelf = shelf(folder, node, &directory, &ShelfOptions::default());
        shelves.push(shelf.clone());
        let (driver, directory) = (std::sync::mpsc::channel().0, directory.clone());
        let known = Arc::new(OnceLock::new());
        assert!(known.set(Links { cluster: CLUSTER, node, directory, driver, shelf }).is_ok());
        let (door, counters) = (FoundingDoor::default(), SharedCounters::default());
        ports.spawn(listen(listener, known, door, None, counters));
    }
    (shelves, ports)
}

async fn upload(shelf: &Shelf, pieces: u8) -> Result<Vec<Digest>, SpreadError> {
    let mut upload = Upload::begin(shelf);
    for number in 0..pieces {
        upload.push(Bytes::from(vec![number; BLOB_BYTES_MAX])).await?;
    }
    Ok(upload.finish().await?.chunks.to_vec())
}

// A2: once a majority has a piece, it does not wait in memory for a disk of this node that is slow.
#[tokio::test]
async fn a2_pieces_do_not_pile_up_before_a_slow_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (shelves, _ports) = nodes(folder.path(), &ShelfOptions::default(), 2).await;
    let held = shelves[0].hold_disk().await;
    upload(&shelves[0], 12).await.unwrap();
    drop(held);
    // Whatever waited for the disk came before.
    let _held = shelves[0].hold_disk().await;
    assert_eq!(shelves[0].counters().stored, 0);
    assert_eq!(shelves[1].counters().stored, 12);
}

// F-12, CH-5: what finds no room here is served all the same, and repair does not fetch it round after round.
#[tokio::test]
async fn f_12_a_full_disk_hides_no_piece_and_fetches_none_in_vain() {
    let folder = tempfile::tempdir().unwrap();
    let full = ShelfOptions { reserve_bytes: u64::MAX, ..ShelfOptions::default() };
    let (shelves, _ports) = nodes(folder.path(), &full, 2).await;
    let piece = upload(&shelves[1], 1).await.unwrap()[0];
    shelves[0].forget_all();
    let before = shelves[0].counters();
    assert!(shelves[0].bring_back(piece).await.is_err(), "there is no room");
    assert_eq!(shelves[0].counters().fetched, before.fetched, "it need not travel");
    assert_eq!(shelves[0].fetch(piece, false).await.unwrap(), vec![0; BLOB_BYTES_MAX]);
    assert_eq!(shelves[0].counters().fetched, before.fetched + 1);
    assert_eq!(shelves[0].counters().stored, 0);
}

// F-37: a piece that the disk cannot read comes from a peer, and takes its place again.
#[tokio::test]
async fn f_37_a_piece_that_cannot_be_read_heals() {
    let folder = tempfile::tempdir().unwrap();
    let (shelves, _ports) = nodes(folder.path(), &ShelfOptions::default(), 1).await;
    let piece = upload(&shelves[0], 1).await.unwrap()[0];
    let name = piece.to_string();
    let file = folder.path().join("n1/blob").join(&name[..2]).join(&name);
    // As good as a bad sector: a read of it fails for good.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    shelves[0].forget_all();
    assert_eq!(shelves[0].fetch(piece, false).await.unwrap(), vec![0; BLOB_BYTES_MAX]);
    assert_eq!(shelves[0].counters().damaged, 1);
    assert!(file.is_file());
}

// A4: whether outputs are kept is not known while nodes are silent; that nodes have lost them is.
#[tokio::test]
async fn a4_silent_nodes_are_told_from_lost_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let (shelves, mut ports) = nodes(folder.path(), &ShelfOptions::default(), 1).await;
    let pieces = upload(&shelves[0], 1).await.unwrap();
    assert_eq!(shelves[0].confirm(&pieces).await, Ok(()));
    let never = [Digest([9; 32])];
    assert_eq!(shelves[0].confirm(&never).await, Err(SpreadError::Lost { lost: 1 }));
    ports.shutdown().await;
    let silent = shelves[0].confirm(&pieces).await;
    assert!(matches!(silent, Err(SpreadError::TooFew { copies: 1, .. })), "{silent:?}");
}
