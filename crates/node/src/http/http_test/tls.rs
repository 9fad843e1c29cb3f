//! Clients by TLS: plain calls and pipes, strangers without it, and certificates that change meanwhile (X2).

use std::sync::Arc;

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};
use ikada_api::routes::Role;
use ikada_api::v1::NewTask;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::HttpLimits;
use super::roles::{guarded, make_token};
use super::socket::Server;
use crate::http::Security;
use crate::tls::{Authority, Name, Papers, Tls, any_name};

const NAME: Name = Name { cluster: 7, node: 1 };

fn hosts() -> Vec<String> {
    vec!["127.0.0.1".to_owned()]
}

fn client(server: &Server, authority_pem: &str, token: &str) -> Client {
    let options = ClientOptions {
        token: AccessToken::parse(token).ok(),
        authority: TrustedAuthority::from_pem(authority_pem.as_bytes()).ok(),
        timeout: std::time::Duration::from_secs(5),
        ..ClientOptions::default()
    };
    Client::with([format!("https://{}", server.address)], options).unwrap()
}

#[tokio::test]
async fn x_2_calls_go_on_while_certificates_change() {
    let folder = tempfile::tempdir().unwrap();
    let papers = Papers::found(folder.path(), NAME, &hosts(), 0).unwrap();
    let tls = Tls::new(&papers).unwrap();
    let security = Security { tls: Some(tls.clone()), ..guarded() };
    let server = Server::guarded(HttpLimits::default(), security).await;
    let token = make_token(&server.door, "ann", Role::Admin, &[]).await;
    let old = client(&server, &papers.authority_pem, &token);
    for _ in 0..10 {
        assert!(tls.renew_now(&[], &hosts()).await.unwrap());
        tls.reload().unwrap();
        let fresh = client(&server, &papers.authority_pem, &token);
        for client in [&old, &fresh] {
            client.whoami().await.unwrap();
            client.enqueue(vec![NewTask::default()]).await.unwrap();
        }
    }
    assert_eq!(old.tries(), 20, "no call had to be sent twice");
    server.stop().await;
}

#[tokio::test]
async fn x_2_clients_believe_the_cluster_s_authority_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let papers = Papers::found(folder.path(), NAME, &hosts(), 0).unwrap();
    let security = Security { tls: Tls::new(&papers).ok(), ..guarded() };
    let server = Server::guarded(HttpLimits::default(), security).await;
    let token = make_token(&server.door, "ann", Role::Admin, &[]).await;
    let (_, other, _) = Authority::make(7).unwrap();
    let misled = client(&server, &other, &token).with_timeout(std::time::Duration::from_secs(1));
    assert!(misled.whoami().await.is_err());
    let plain = server.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(!plain.starts_with("HTTP"), "{plain}");
    // Both were counted: whoever trusted another authority, and whoever spoke no TLS.
    let mut known = shake(&server, &papers.authority_pem, &[]).await.unwrap();
    let ask = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    known.write_all(ask.as_bytes()).await.unwrap();
    let mut page = String::new();
    known.read_to_string(&mut page).await.unwrap();
    let name = "\nikada_http_handshakes_failed_total ";
    let failed = page.split_once(name).and_then(|(_, rest)| rest.lines().next());
    assert!(failed.unwrap().parse::<u64>().unwrap() >= 2, "{failed:?}");
    let no_authority = Client::new([format!("https://{}", server.address)]);
    assert!(no_authority.unwrap_err().to_string().contains("ca.pem"));
    server.stop().await;
}

/// A handshake in which the caller speaks these protocols; gives the one that was agreed on.
async fn agree(server: &Server, authority_pem: &str, offered: &[&[u8]]) -> Option<Vec<u8>> {
    let stream = shake(server, authority_pem, offered).await?;
    Some(stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec())
}

/// A connection on which the caller speaks these protocols.
async fn shake(
    server: &Server,
    authority_pem: &str,
    offered: &[&[u8]],
) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(any_name(), stream).await.ok()
}

// X7: floods of resets and of empty frames need HTTP/2, and nobody speaks that here.
#[tokio::test]
async fn x_7_http_2_is_not_spoken_behind_tls() {
    let folder = tempfile::tempdir().unwrap();
    let papers = Papers::found(folder.path(), NAME, &hosts(), 0).unwrap();
    let security = Security { tls: Tls::new(&papers).ok(), ..guarded() };
    let server = Server::guarded(HttpLimits::default(), security).await;
    let pem = &papers.authority_pem;
    assert_eq!(agree(&server, pem, &[b"h2"]).await, None);
    assert_eq!(agree(&server, pem, &[b"h2", b"http/1.1"]).await.unwrap(), b"http/1.1");
    assert_eq!(agree(&server, pem, &[]).await.unwrap(), b"");
    server.stop().await;
}
