//! Facts over a real peer port: members with papers are heard, and nobody else (F-38, CH-11).

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ikada_replica::state::Member;
use ikada_store::RealDisk;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{
    BlobDialling, Directory, FoundingDoor, Links, decode, encode, link_hello, listen, wire,
};
use crate::counters::SharedCounters;
use crate::gossip::Fact;
use crate::objects::{BlobAsk, BlobTold, Shelf, ShelfOptions, Upload};
use crate::tls::{Name, Papers, Tls, new_key};

pub(super) const CLUSTER: u64 = 0xc0ffee;

/// Node 1 with its peer port, and what is needed to be node 2.
pub(super) struct Bench {
    pub(super) folder: tempfile::TempDir,
    pub(super) address: String,
    pub(super) directory: Directory,
    pub(super) counters: SharedCounters,
    shelf: Shelf,
    pub(super) port: JoinHandle<()>,
}

pub(super) fn shelf_in(folder: &Path, reach: BlobDialling) -> Shelf {
    std::fs::create_dir_all(folder).unwrap();
    let disk = RealDisk::open(folder).unwrap();
    Shelf::open(disk, &ShelfOptions::default(), reach).unwrap()
}

/// Nodes 1 and 2; node 1 is reached at this address.
pub(super) fn members(address: &str) -> Vec<Member> {
    let member = |node: u64| Member {
        node,
        incarnation: 7,
        peer_addr: if node == 1 { address.to_owned() } else { "127.0.0.1:1".to_owned() },
        client_addr: "127.0.0.1:1".to_owned(),
    };
    vec![member(1), member(2)]
}

pub(super) async fn bench(tls: Option<Tls>) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let directory = Directory::new(members(&address));
    let reach = BlobDialling::new(link_hello(CLUSTER, 1, 7), tls.clone(), directory.clone());
    let shelf = shelf_in(&folder.path().join("one"), reach);
    let links = Links {
        cluster: CLUSTER,
        node: 1,
        directory: directory.clone(),
        driver: std::sync::mpsc::channel().0,
        shelf: shelf.clone(),
    };
    let known = Arc::new(OnceLock::new());
    assert!(known.set(links).is_ok());
    let (door, counters) = (FoundingDoor::default(), SharedCounters::default());
    let port = tokio::spawn(listen(listener, known, door, tls, counters.clone()));
    Bench { folder, address, directory, counters, shelf, port }
}

pub(super) fn fact(node: u64, sequence: u64) -> Fact {
    Fact {
        node,
        life_ms: 1,
        sequence,
        cpu: 4_200,
        memory: 0,
        admitted_last_minute: 0,
        shed_last_minute: 0,
        cache_hit_permille: 0,
        cache_bytes: 0,
        lags: Vec::new(),
    }
}

impl Bench {
    /// Tells node 1 something, as whoever has these papers and says it is node 2 with this disk.
    pub(super) async fn tell(
        &self,
        tls: Option<Tls>,
        node: u64,
        incarnation: u64,
        fact: Fact,
    ) -> bool {
        let hello = link_hello(CLUSTER, node, incarnation);
        let reach = BlobDialling::new(hello, tls, self.directory.clone());
        let place = tempfile::tempdir_in(self.folder.path()).unwrap();
        let shelf = shelf_in(place.path(), reach);
        let peer = shelf.peers().into_iter().find(|peer| peer.node == 1).unwrap();
        peer.gossip(vec![fact]).await.is_ok()
    }

    pub(super) fn heard(&self) -> Vec<(u64, u64)> {
        let facts = self.shelf.gossip().facts(Instant::now());
        facts.iter().map(|fact| (fact.node, fact.sequence)).collect()
    }
}

/// Papers of node 2, signed by this authority.
pub(super) fn second(papers: &Papers, folder: &Path) -> Tls {
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    signed(papers, folder, Name { cluster: CLUSTER, node: 2 }, later)
}

/// Papers of any name, signed by this authority, until then.
pub(super) fn signed(
    papers: &Papers,
    folder: &Path,
    name: Name,
    until: std::time::SystemTime,
) -> Tls {
    let (authority, key) = (papers.authority().unwrap().unwrap(), new_key().unwrap());
    let hosts = ["127.0.0.1".to_owned()];
    let public_key = key.public_key_raw();
    let certificate = authority.sign(&name.to_string(), public_key, &hosts, until).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("ca.pem"), &papers.authority_pem).unwrap();
    std::fs::write(folder.join("node.key"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("node.pem"), certificate).unwrap();
    Tls::new(&Papers::load(folder).unwrap().unwrap()).unwrap()
}

// F-38, CH-11, X2
#[tokio::test]
async fn f_38_with_tls_nobody_gossips_without_papers_of_the_cluster() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hosts = ["127.0.0.1".to_owned()];
    let found = |folder: &Path, node| {
        Papers::found(folder, Name { cluster: CLUSTER, node }, &hosts, 0).unwrap()
    };
    let papers = found(ours.path(), 1);
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let member = second(&papers, &ours.path().join("second"));
    let stranger = Tls::new(&found(theirs.path(), 2)).unwrap();
    assert!(!bench.tell(None, 2, 7, fact(2, 1)).await, "no certificate");
    assert!(!bench.tell(Some(stranger), 2, 7, fact(2, 2)).await, "of another authority");
    let first = Tls::new(&papers).unwrap();
    assert!(!bench.tell(Some(first), 2, 7, fact(2, 3)).await, "of another node");
    assert_eq!(bench.heard(), []);
    assert!(bench.tell(Some(member.clone()), 2, 7, fact(2, 4)).await);
    assert_eq!(bench.heard(), [(2, 4)]);
    // A member speaks of members only, and is no more than a member.
    assert!(bench.tell(Some(member.clone()), 2, 7, fact(9, 5)).await);
    assert!(!bench.tell(Some(member), 2, 8, fact(2, 6)).await, "with another disk");
    assert_eq!(bench.heard(), [(2, 4)]);
    bench.port.abort();
}

// F-38
#[tokio::test]
async fn f_38_garbage_ends_its_own_connection_and_nothing_else() {
    let bench = bench(None).await;
    let hello = link_hello(CLUSTER, 2, 7);
    let reach = BlobDialling::new(hello, None, bench.directory.clone());
    let (node, address) = reach.others().into_iter().find(|(node, _)| *node == 1).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..200 {
        let mut stream = reach.dial(node, &address).await.unwrap();
        let length = random.usize(0..300);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        if round % 2 == 0 {
            // A real message with a flipped bit.
            bytes = encode(&BlobAsk::Gossip(vec![fact(9, 1); 3]));
            let place = random.usize(0..bytes.len());
            bytes[place] ^= 1 << random.u8(0..8);
        }
        let _ = wire::write(&mut stream, &bytes).await;
        // A bit in a figure leaves a message that can be read: then only what is known may come back. One that turns it
        // into another question waits for more, and gets nothing.
        let wait = std::time::Duration::from_millis(100);
        let reading = tokio::time::timeout(wait, wire::read(&mut stream, 1 << 20)).await;
        if let Ok(Ok(Some(answer))) = reading {
            let told: Option<BlobTold> = decode(&answer);
            assert!(
                matches!(&told, Some(BlobTold::Gossip(facts)) if facts.is_empty()),
                "round {round}: {told:?}"
            );
            assert!(round % 2 == 0, "round {round} was answered");
        }
    }
    assert_eq!(bench.heard(), [], "no message spoke of a member");
    assert!(!bench.tell(None, 3, 7, fact(2, 1)).await, "a stranger");
    assert!(bench.tell(None, 2, 7, fact(2, 1)).await, "the port goes on");
    assert_eq!(bench.heard(), [(2, 1)]);
    bench.port.abort();
}

/// Node 2's shelf, with node 1 as its peer where the directory says so.
fn shelf_of_second(bench: &Bench, directory: &Directory) -> Shelf {
    let reach = BlobDialling::new(link_hello(CLUSTER, 2, 7), None, directory.clone());
    shelf_in(&bench.folder.path().join("two"), reach)
}

// CH-1: an object of any size can be copied; one question about all its pieces would be too long.
#[tokio::test]
async fn ch_1_pieces_of_the_largest_object_can_be_confirmed() {
    let bench = bench(None).await;
    let shelf = shelf_of_second(&bench, &bench.directory);
    let mut upload = Upload::begin(&shelf);
    upload.push(bytes::Bytes::from_static(b"piece")).await.unwrap();
    let content = upload.finish().await.unwrap();
    let many = vec![content.chunks[0]; 4_096];
    assert_eq!(shelf.confirm(&many).await, Ok(()));
    let mut lost = many;
    lost.push(ikada_replica::state::Digest([9; 32]));
    assert!(shelf.confirm(&lost).await.is_err(), "one that nobody has");
    bench.port.abort();
}

// A2: what a majority of the old members has may be on too few of the new ones.
#[tokio::test]
async fn a2_an_upload_is_confirmed_again_when_the_members_changed() {
    let bench = bench(None).await;
    let all = members(&bench.address);
    let directory = Directory::new(vec![all[1].clone()]);
    let shelf = shelf_of_second(&bench, &directory);
    let piece = bytes::Bytes::from(vec![7; ikada_store::BLOB_BYTES_MAX]);
    let mut upload = Upload::begin(&shelf);
    upload.push(piece.clone()).await.unwrap();
    // The piece is on what is all nodes before the other one joins.
    while shelf.counters().stored == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    directory.learn(&ikada_replica::Roll { members: all, removed: Vec::new() });
    assert!(upload.finish().await.is_err(), "node 1 has not got it");
    let mut upload = Upload::begin(&shelf);
    upload.push(piece).await.unwrap();
    assert!(upload.finish().await.is_ok(), "both have it now");
    bench.port.abort();
}
