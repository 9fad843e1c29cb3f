//! Who passes the peer port: nodes of this cluster, and nobody else (X2).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use ikada_api::socket::Socket;

use super::stream::{Accepted, Purpose, accept, dial};
use crate::tls::{Authority, JOIN_PROTOCOL, Name, PEER_PROTOCOL, Papers, Tls, any_name, new_key};

const CLUSTER: u64 = 0xc0ffee;

fn hosts() -> Vec<String> {
    vec!["127.0.0.1".to_owned()]
}

fn papers(folder: &Path, node: u64) -> Papers {
    Papers::found(folder, Name { cluster: CLUSTER, node }, &hosts(), 2).unwrap()
}

/// A dialler's settings with any certificate, or none.
fn dialler(authority: &str, certificate: Option<(&str, &str)>, protocol: &[u8]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    config
}

/// What the port makes of a dialler that at once sends bytes.
async fn knock(tls: &Tls, config: Option<ClientConfig>) -> std::io::Result<Accepted> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dialling = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        match config {
            None => {
                let _ = stream.write_all(b"\x10\0\0\0\0\0\0\0plain frames here").await;
                let _ = stream.read(&mut [0; 16]).await;
            }
            Some(config) => {
                let connector = TlsConnector::from(Arc::new(config));
                if let Ok(mut stream) = connector.connect(any_name(), stream).await {
                    let _ = stream.write_all(b"frame").await;
                    let _ = stream.read(&mut [0; 16]).await;
                }
            }
        }
    });
    let (stream, _) = listener.accept().await.unwrap();
    let accepted = accept(stream, Some(tls)).await;
    dialling.abort();
    accepted
}

fn signed(authority: &Authority, uri: &str, until: SystemTime) -> (String, String) {
    let key = new_key().unwrap();
    let certificate = authority.sign(uri, key.public_key_raw(), &hosts(), until).unwrap();
    (certificate, key.serialize_pem())
}

#[tokio::test]
async fn x_2_only_nodes_of_this_cluster_pass() {
    let folder = tempfile::tempdir().unwrap();
    let papers = papers(folder.path(), 1);
    let tls = Tls::new(&papers).unwrap();
    let authority = papers.authority().unwrap().unwrap();
    let later = SystemTime::now() + Duration::from_secs(3600);
    let earlier = SystemTime::now() - Duration::from_secs(60);
    let ours = Name { cluster: CLUSTER, node: 2 }.to_string();
    let theirs = Name { cluster: CLUSTER + 1, node: 2 }.to_string();
    let (stranger, _, _) = Authority::make(CLUSTER).unwrap();
    let knocks = [
        ("wrong authority", signed(&stranger, &ours, later)),
        ("expired", signed(&authority, &ours, earlier)),
        ("wrong role", signed(&authority, "ikada://0000000000c0ffee/operator/2", later)),
        ("a worker", signed(&authority, "ikada://0000000000c0ffee/worker/2", later)),
        ("other cluster", signed(&authority, &theirs, later)),
    ];
    for (what, (certificate, key)) in &knocks {
        let pair = Some((certificate.as_str(), key.as_str()));
        let config = dialler(&papers.authority_pem, pair, PEER_PROTOCOL);
        assert!(knock(&tls, Some(config)).await.is_err(), "{what}");
    }
    assert!(knock(&tls, None).await.is_err(), "plain text");
    let nobody = dialler(&papers.authority_pem, None, PEER_PROTOCOL);
    assert!(knock(&tls, Some(nobody)).await.is_err(), "no certificate");
    let other = dialler(&papers.authority_pem, None, b"http/1.1");
    assert!(knock(&tls, Some(other)).await.is_err(), "another protocol");

    let newcomer = dialler(&papers.authority_pem, None, JOIN_PROTOCOL);
    let accepted = knock(&tls, Some(newcomer)).await.unwrap();
    assert_eq!((accepted.purpose, accepted.shown), (Purpose::Join, None), "may only ask to join");
    let (certificate, key) = signed(&authority, &ours, later);
    let pair = Some((certificate.as_str(), key.as_str()));
    let peer = dialler(&papers.authority_pem, pair, PEER_PROTOCOL);
    let accepted = knock(&tls, Some(peer)).await.unwrap();
    assert_eq!(accepted.purpose, Purpose::Peer);
    assert_eq!(accepted.shown.unwrap().name, Name { cluster: CLUSTER, node: 2 });
}

#[tokio::test]
async fn x_2_a_certificate_that_was_replaced_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let papers = papers(folder.path(), 1);
    let tls = Tls::new(&papers).unwrap();
    let authority = papers.authority().unwrap().unwrap();
    let given = |serial| {
        let key = new_key().unwrap();
        let pem = authority.sign_node((2, serial), key.public_key_raw(), &hosts()).unwrap();
        let pair = (pem, key.serialize_pem());
        dialler(&papers.authority_pem, Some((pair.0.as_str(), pair.1.as_str())), PEER_PROTOCOL)
    };
    let (old, new) = (given(100), given(101));
    assert!(knock(&tls, Some(old.clone())).await.is_ok(), "nothing newer is known");
    assert!(knock(&tls, Some(new.clone())).await.is_ok());
    let refused = knock(&tls, Some(old)).await.err().expect("refused").to_string();
    assert!(refused.contains("replaced"), "{refused}");
    assert!(knock(&tls, Some(new)).await.is_ok());
}

#[tokio::test]
async fn x_2_a_dialler_reaches_the_node_it_means_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::new(&papers(folder.path(), 1)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = tls.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = accept(stream, Some(&served)).await;
        }
    });
    assert!(dial(&address, Some(&tls), Some(1)).await.is_ok());
    assert!(dial(&address, Some(&tls), Some(2)).await.is_err());
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Tls::new(&papers(elsewhere.path(), 1)).unwrap();
    assert!(dial(&address, Some(&other), Some(1)).await.is_err(), "other authority");
    serving.abort();
}

#[tokio::test]
async fn x_2_a_new_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let papers = papers(folder.path(), 1);
    let tls = Tls::new(&papers).unwrap();
    let before = tls.clients();
    assert!(!tls.reload().unwrap(), "nothing changed");
    assert!(tls.renew_now(&[], &hosts()).await.unwrap());
    assert!(tls.reload().unwrap());
    assert!(!Arc::ptr_eq(&before, &tls.clients()));
    let again = Papers::load(&papers.folder).unwrap().unwrap();
    assert_ne!(again.node_pem, papers.node_pem);
    assert_eq!((again.name, &again.authority_pem), (papers.name, &papers.authority_pem));
}

// MQ-17: a cut must not outlast itself because the kernel waits ever longer before it tries again.
#[tokio::test]
async fn silence_ends_connections_on_both_sides() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (dialled, accepted) = tokio::join!(dial(&address, None, None), listener.accept());
    let accepted = accept(accepted.unwrap().0, None).await.unwrap().stream;
    for socket in [dialled.unwrap(), accepted] {
        let Socket::Plain(stream) = socket else { panic!("no TLS was asked for") };
        let socket = socket2::SockRef::from(&stream);
        let limit = socket.tcp_user_timeout().unwrap().expect("a limit");
        assert!(limit < Duration::from_secs(10), "{limit:?}");
        assert!(socket.keepalive().unwrap());
    }
}
