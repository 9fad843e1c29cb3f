//! Clients by TLS: plain calls and pipes, strangers without it, and certificates that change meanwhile (X2).

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};
use ikada_api::routes::Role;
use ikada_api::v1::NewTask;

use super::HttpLimits;
use super::roles::{guarded, make_token};
use super::socket::Server;
use crate::http::Security;
use crate::tls::{Authority, Name, Papers, Tls};

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
    let no_authority = Client::new([format!("https://{}", server.address)]);
    assert!(no_authority.unwrap_err().to_string().contains("ca.pem"));
    server.stop().await;
}
