//! What connections of strangers cost a node in memory: counted in resident bytes of the process, over 900 of each kind
//! on each port (X7).

use std::collections::VecDeque;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cluster::Cluster;
use crate::fresh::{ikada, ports};
use crate::wait::until;

/// What each may hold.
const BYTES_MAX: u64 = 64 << 10;
/// So many at a time on the ports of clients.
const MANY: usize = 900;
/// So many on the port of peers, which has room for 256 in all.
const FEW: usize = 200;

/// A node whose memory moves by less than this over so many looks rests.
const RESTING_BYTES: u64 = 512 << 10;
const LOOKS: usize = 20;

/// What a process holds in memory of its own.
fn resident(process: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).expect("alive");
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).expect("a sum");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("KiB") << 10
}

/// Connections that a port has open, and bytes that wait in them unread.
fn open_at(address: &str) -> (usize, u64) {
    let port: u16 = address.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let wanted = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_port = fields.filter(|fields| {
        // 01 is established, 08 closed by the other side.
        fields.get(1) == Some(&wanted.as_str()) && matches!(fields.get(3), Some(&"01" | &"08"))
    });
    let unread = |fields: &Vec<&str>| {
        let (_, unread) = fields[4].split_once(':').expect("two queues");
        u64::from_str_radix(unread, 16).expect("a number")
    };
    of_port.fold((0, 0), |(count, bytes), fields| (count + 1, bytes + unread(&fields)))
}

/// A node of its own for each kind of strangers: what earlier ones have left behind its allocator keeps by thread, so how
/// much of that later ones use is chance, and so it is after a restart.
struct Weighed {
    cluster: Cluster,
    s3: String,
    /// What it held before any came.
    before: u64,
}

impl Weighed {
    async fn open() -> Weighed {
        let mut cluster = Cluster::prepare(1);
        cluster.launch(1);
        cluster.settle().await;
        Weighed::calm(cluster, String::new()).await
    }

    async fn guarded() -> Weighed {
        let mut cluster = Cluster::prepare(1);
        let s3 = ports(1).remove(0);
        let mut program = ikada();
        program.env("IKADA_TLS", "true").env("IKADA_S3_LISTEN", &s3);
        cluster.launch_by(1, program);
        let token = cluster.node(1).data.join("admin-token");
        until("the node serves", || async { token.exists().then_some(()) }).await;
        Weighed::calm(cluster, s3).await
    }

    /// Waits until the node has started and rests.
    async fn calm(cluster: Cluster, s3: String) -> Weighed {
        let process = cluster.process(1);
        let mut seen = VecDeque::new();
        let before = until("the node rests", || {
            seen.push_back(resident(process));
            if seen.len() > LOOKS {
                seen.pop_front();
            }
            let (low, high) = (seen.iter().min().copied(), seen.iter().max().copied());
            let rests = high.zip(low).filter(|(high, low)| high - low <= RESTING_BYTES);
            let rests = rests.filter(|_| seen.len() == LOOKS).map(|(_, low)| low);
            async move { rests }
        });
        Weighed { before: before.await, cluster, s3 }
    }

    fn peer(&self) -> String {
        self.cluster.node(1).peer.clone()
    }

    fn client(&self) -> String {
        self.cluster.node(1).url.replace("http://", "")
    }

    /// Fails if the connections that `open` makes cost the node more than their bound, once it has read what it reads of
    /// them.
    async fn weigh<S, F: Future<Output = S>>(
        &self,
        (address, count): (&str, usize),
        what: &str,
        open: impl Fn() -> F,
    ) {
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(open().await);
        }
        until("the node has read what it reads", || async {
            (open_at(address).1 == 0).then_some(())
        })
        .await;
        let grown = resident(self.cluster.process(1)).saturating_sub(self.before);
        let (still, _) = open_at(address);
        eprintln!("{what}: {still} of {count} open, {} bytes each", grown / count as u64);
        let most = BYTES_MAX * count as u64;
        assert!(grown <= most, "{what}: {grown} bytes for {count} connections");
    }
}

async fn plain(address: &str, said: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The node may close while more is on its way.
    let _ = stream.write_all(said).await;
    stream
}

async fn secure(address: &str, config: &Arc<ClientConfig>, said: &[u8]) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut stream =
        TlsConnector::from(config.clone()).connect(name, stream).await.expect("a handshake");
    let _ = stream.write_all(said).await;
    let _ = stream.flush().await;
    stream
}

fn config(cluster: &Cluster) -> Arc<ClientConfig> {
    let pem = std::fs::read(cluster.node(1).data.join("tls/ca.pem")).expect("an authority");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("added");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("a version");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A head that never ends, as long as one may be.
fn half_a_head() -> Vec<u8> {
    let mut head = b"GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\nx-slow: ".to_vec();
    head.resize((16 << 10) - 1, b'a');
    head
}

/// The front of a first message of TLS that claims to be as long as one may be, in records of 16 KiB.
fn half_a_handshake() -> Vec<u8> {
    let mut message = vec![1, 0, 0xff, 0xff];
    message.resize(60 << 10, 0);
    let mut records = Vec::new();
    for piece in message.chunks(16 << 10) {
        records.extend_from_slice(&[22, 3, 1]);
        records.extend_from_slice(&(piece.len() as u16).to_be_bytes());
        records.extend_from_slice(piece);
    }
    records
}

/// The front of a frame between nodes that claims to be so long.
fn half_an_opening(length: u32) -> Vec<u8> {
    let mut frame = length.to_le_bytes().to_vec();
    frame.resize(length as usize, 0);
    frame
}

#[tokio::test]
async fn x_7_a_stranger_at_a_guarded_node_holds_at_most_64_kib() {
    let (head, shaking) = (half_a_head(), half_a_handshake());
    let node = Weighed::guarded().await;
    let peer = node.peer();
    node.weigh((&peer, FEW), "peers: idle", || plain(&peer, b"")).await;
    let node = Weighed::guarded().await;
    let peer = node.peer();
    node.weigh((&peer, FEW), "peers: half a handshake", || plain(&peer, &shaking)).await;
    for door in ["clients", "S3"] {
        let at = |node: &Weighed| if door == "S3" { node.s3.clone() } else { node.client() };
        for (what, said) in [("idle", b"".as_slice()), ("half a handshake", &shaking)] {
            let node = Weighed::guarded().await;
            let (address, what) = (at(&node), format!("{door}: {what}"));
            node.weigh((&address, MANY), &what, || plain(&address, said)).await;
        }
        for (what, said) in [("idle in TLS", b"".as_slice()), ("half a head", &head)] {
            let node = Weighed::guarded().await;
            let (address, what) = (at(&node), format!("{door}: {what}"));
            let config = config(&node.cluster);
            node.weigh((&address, MANY), &what, || secure(&address, &config, said)).await;
        }
    }
}

#[tokio::test]
async fn x_7_a_stranger_at_an_open_node_holds_at_most_64_kib() {
    // Longer ones are refused by their length alone.
    for length in [24 << 10, 127 << 10] {
        let node = Weighed::open().await;
        let (peer, opening) = (node.peer(), half_an_opening(length));
        let what = format!("peers: half an opening of {length}");
        node.weigh((&peer, FEW), &what, || plain(&peer, &opening)).await;
    }
    let node = Weighed::open().await;
    let (client, head) = (node.client(), half_a_head());
    node.weigh((&client, MANY), "clients: half a head", || plain(&client, &head)).await;
}
