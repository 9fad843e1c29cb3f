//! What a key of gossip's own would have to give, given by the certificates of the peer port (X3, F-38, decision 0019):
//! replayed bytes, bytes of others and of nodes that were cut off are taken by nobody and counted, and keys change while
//! nodes run.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use ikada_replica::Roll;
use ikada_replica::founding::{Candidate, FoundingMessage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::gossip_test::{Bench, CLUSTER, bench, fact, members, second, shelf_in, signed};
use super::hello::LinkHello;
use super::stream::dial;
use super::{BlobDialling, Directory, Opening, Welcome, decode, encode, link_hello, wire};
use crate::tls::{Name, Papers, Tls, new_key};

const HOSTS: [&str; 1] = ["127.0.0.1"];

fn found(folder: &Path) -> Papers {
    let hosts = HOSTS.map(str::to_owned);
    Papers::found(folder, Name { cluster: CLUSTER, node: 1 }, &hosts, 0).unwrap()
}

/// Waits until the port has counted so many; what it counts comes a moment after the connection ends.
async fn counted(bench: &Bench, wanted: u64) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while bench.counters.read().peers_refused < wanted {
        assert!(std::time::Instant::now() < deadline, "{:?}", bench.counters.read());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(bench.counters.read().peers_refused, wanted);
}

/// Passes connections on to an address and writes down what callers sent.
async fn eavesdrop(to: String) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let taped = Arc::new(Mutex::new(Vec::new()));
    let tape = taped.clone();
    tokio::spawn(async move {
        let (caller, _) = listener.accept().await.unwrap();
        let node = TcpStream::connect(to).await.unwrap();
        let ((mut from, mut back), (mut answers, mut on)) =
            (caller.into_split(), node.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            tape.lock().unwrap().extend_from_slice(&bytes[..count]);
            on.write_all(&bytes[..count]).await.unwrap();
        }
    });
    (address, taped)
}

#[tokio::test]
async fn x_3_taped_gossip_says_nothing_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let member = second(&papers, &folder.path().join("second"));
    let (address, taped) = eavesdrop(bench.address.clone()).await;
    let hello = link_hello(CLUSTER, 2, 7);
    let reach = BlobDialling::new(hello, Some(member), Directory::new(members(&address)));
    let shelf = shelf_in(&folder.path().join("two"), reach);
    let peer = shelf.peers().into_iter().find(|peer| peer.node == 1).unwrap();
    peer.gossip(vec![fact(2, 4)]).await.unwrap();
    assert_eq!(bench.heard(), [(2, 4)]);
    let tape = taped.lock().unwrap().clone();
    assert!(tape.len() > 500, "a handshake and a message");
    let name = format!("ikada://{CLUSTER:016x}");
    assert!(
        !tape.windows(name.len()).any(|window| window == name.as_bytes()),
        "who speaks is told"
    );
    for round in 1..=3 {
        let mut stream = TcpStream::connect(&bench.address).await.unwrap();
        stream.write_all(&tape).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        counted(&bench, round).await;
    }
    // The node itself may still say something newer, so nothing of the tape was taken as a later word.
    peer.gossip(vec![fact(2, 5)]).await.unwrap();
    assert_eq!(bench.heard(), [(2, 5)]);
    bench.port.abort();
}

#[tokio::test]
async fn x_3_papers_that_ran_out_or_name_another_cluster_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let (now, minute) = (SystemTime::now(), Duration::from_secs(60));
    let (ours, theirs) = (Name { cluster: CLUSTER, node: 2 }, Name { cluster: 7, node: 2 });
    let late = signed(&papers, &folder.path().join("late"), ours, now - minute);
    let foreign = signed(&papers, &folder.path().join("foreign"), theirs, now + minute);
    assert!(!bench.tell(Some(late), 2, 7, fact(2, 1)).await, "ran out");
    counted(&bench, 1).await;
    assert!(!bench.tell(Some(foreign), 2, 7, fact(2, 2)).await, "another cluster");
    counted(&bench, 2).await;
    assert!(!bench.tell(None, 2, 7, fact(2, 3)).await, "no papers");
    counted(&bench, 3).await;
    let member = second(&papers, &folder.path().join("second"));
    assert!(!bench.tell(Some(member.clone()), 3, 7, fact(2, 4)).await, "as another node");
    counted(&bench, 4).await;
    assert_eq!(bench.heard(), []);
    assert!(bench.tell(Some(member), 2, 7, fact(2, 5)).await);
    assert_eq!(bench.heard(), [(2, 5)]);
    counted(&bench, 4).await;
    bench.port.abort();
}

#[tokio::test]
async fn x_3_garbage_within_a_good_connection_ends_it_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let member = second(&papers, &folder.path().join("second"));
    let reach = BlobDialling::new(link_hello(CLUSTER, 2, 7), Some(member), bench.directory.clone());
    let mut random = fastrand::Rng::with_seed(5);
    for round in 1..=20 {
        let mut stream = reach.dial(1, &bench.address).await.unwrap();
        let bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        wire::write(&mut stream, &bytes).await.unwrap();
        let answer = wire::read(&mut stream, 1 << 20).await;
        assert!(!matches!(answer, Ok(Some(_))), "round {round} was answered");
        counted(&bench, round).await;
    }
    assert_eq!(bench.heard(), []);
    bench.port.abort();
}

#[tokio::test]
async fn x_3_a_removed_node_is_cut_off_although_its_papers_hold() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let member = second(&papers, &folder.path().join("second"));
    let hello = link_hello(CLUSTER, 2, 7);
    let reach =
        BlobDialling::new(hello, Some(member.clone()), Directory::new(members(&bench.address)));
    let shelf = shelf_in(&folder.path().join("two"), reach);
    let peer = shelf.peers().into_iter().find(|peer| peer.node == 1).unwrap();
    peer.gossip(vec![fact(2, 1)]).await.unwrap();
    assert_eq!(bench.heard(), [(2, 1)]);
    let hosts = HOSTS.map(str::to_owned);
    let desk = [bench.address.clone()];
    assert!(member.renew_now(&desk, &hosts).await.unwrap(), "a member renews");
    let only_first = members(&bench.address)[..1].to_vec();
    bench.directory.learn(&Roll { members: only_first, removed: vec![2] });
    // Its open connection, and a fresh one. What it says of others counts as little.
    assert!(peer.gossip(vec![fact(2, 2), fact(1, 9)]).await.is_err());
    assert!(!bench.tell(Some(member.clone()), 2, 7, fact(2, 3)).await);
    assert_eq!(bench.heard(), [(2, 1)], "forgotten with time, and told no more");
    assert!(bench.counters.read().peers_refused >= 1);
    assert!(!member.renew_now(&desk, &hosts).await.unwrap(), "its papers run out");
    bench.port.abort();
}

#[tokio::test]
async fn x_3_keys_change_while_nodes_run() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let own = Tls::new(&papers).unwrap();
    let bench = bench(Some(own.clone())).await;
    let member = second(&papers, &folder.path().join("second"));
    let (hosts, desk) = (HOSTS.map(str::to_owned), [bench.address.clone()]);
    let mut sequence = 0;
    for (renewed, asks) in [(&own, &[][..]), (&member, &desk[..]), (&own, &[][..])] {
        sequence += 1;
        assert!(bench.tell(Some(member.clone()), 2, 7, fact(2, sequence)).await);
        let before = renewed.peers_out();
        assert!(renewed.renew_now(asks, &hosts).await.unwrap());
        // Old and new papers of one authority are good side by side: no moment has neither.
        sequence += 1;
        assert!(bench.tell(Some(member.clone()), 2, 7, fact(2, sequence)).await);
        assert!(renewed.reload().unwrap(), "the new papers are in use");
        assert!(!Arc::ptr_eq(&before, &renewed.peers_out()));
        sequence += 1;
        assert!(bench.tell(Some(member.clone()), 2, 7, fact(2, sequence)).await);
        assert_eq!(bench.heard(), [(2, sequence)]);
    }
    counted(&bench, 0).await;
    bench.port.abort();
}

/// Papers of node 2 with this place among all certificates.
fn given(papers: &Papers, folder: &Path, serial: u64) -> Tls {
    let (authority, key) = (papers.authority().unwrap().unwrap(), new_key().unwrap());
    let hosts = HOSTS.map(str::to_owned);
    let pem = authority.sign_node((2, serial), key.public_key_raw(), &hosts).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("ca.pem"), &papers.authority_pem).unwrap();
    std::fs::write(folder.join("node.key"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("node.pem"), pem).unwrap();
    Tls::new(&Papers::load(folder).unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn x_2_a_replaced_key_loses_what_it_has_open_when_its_node_links_anew() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let old = given(&papers, &folder.path().join("old"), 100);
    let new = given(&papers, &folder.path().join("new"), 101);
    let hello = link_hello(CLUSTER, 2, 7);
    let reach =
        BlobDialling::new(hello, Some(old.clone()), Directory::new(members(&bench.address)));
    let shelf = shelf_in(&folder.path().join("two"), reach);
    let peer = shelf.peers().into_iter().find(|peer| peer.node == 1).unwrap();
    peer.gossip(vec![fact(2, 1)]).await.unwrap();
    let mut stream = dial(&bench.address, Some(&new), Some(1)).await.unwrap();
    let opening = Opening::Link(LinkHello { to: 1, ..hello });
    wire::write(&mut stream, &encode(&opening)).await.unwrap();
    let answer = wire::read(&mut stream, 1 << 16).await.unwrap().unwrap();
    assert_eq!(decode::<Welcome>(&answer), Some(Welcome::Accepted));
    counted(&bench, 0).await;
    assert!(peer.gossip(vec![fact(2, 2)]).await.is_err(), "an open connection");
    assert!(!bench.tell(Some(old), 2, 7, fact(2, 3)).await, "and a fresh one");
    assert!(bench.tell(Some(new), 2, 7, fact(2, 4)).await);
    assert_eq!(bench.heard(), [(2, 4)]);
    bench.port.abort();
}

#[tokio::test]
async fn x_3_a_founding_question_is_asked_in_nobody_elses_name() {
    let folder = tempfile::tempdir().unwrap();
    let papers = found(folder.path());
    let bench = bench(Some(Tls::new(&papers).unwrap())).await;
    let member = second(&papers, &folder.path().join("second"));
    for (node, refused) in [(2, 0), (1, 1), (9, 2)] {
        let (peer_addr, client_addr) = ("127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned());
        let me = Candidate { node, incarnation: 7, peer_addr, client_addr };
        let mut stream = dial(&bench.address, Some(&member), Some(1)).await.unwrap();
        let question = Opening::Founding(FoundingMessage::Join(me));
        wire::write(&mut stream, &encode(&question)).await.unwrap();
        let answer = wire::read(&mut stream, 1 << 16).await;
        assert!(!matches!(answer, Ok(Some(_))), "nobody answers here: {answer:?}");
        counted(&bench, refused).await;
    }
    bench.port.abort();
}
