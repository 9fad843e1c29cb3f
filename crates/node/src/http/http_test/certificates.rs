//! Clients that show certificates in place of tokens: the right one, and every wrong one (X2, X4, X17).

use std::time::{Duration, SystemTime};

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, Error, TrustedAuthority};
use ikada_api::routes::Role;
use ikada_api::state::{Digest, PrincipalName};
use ikada_api::v1::{NewTask, NewToken, TokenMade};

use super::HttpLimits;
use super::roles::{guarded, make_token};
use super::socket::Server;
use crate::http::Security;
use crate::tls::{Authority, ClientName, ClientPapers, Name, Papers, Tls};

const NAME: Name = Name { cluster: 7, node: 1 };
const HOUR: Duration = Duration::from_secs(3_600);

/// A server that asks for tokens or certificates, and its admin.
struct World {
    server: Server,
    papers: Papers,
    authority: Authority,
    admin: Client,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let papers = Papers::found(folder.path(), NAME, &["127.0.0.1".to_owned()], 0).unwrap();
        let authority = papers.authority().unwrap().unwrap();
        let security = Security { tls: Some(Tls::new(&papers).unwrap()), ..guarded() };
        let server = Server::guarded(HttpLimits::default(), security).await;
        let token = make_token(&server.door, "root", Role::Admin, &[]).await;
        let options = ClientOptions {
            token: AccessToken::parse(&token).ok(),
            authority: TrustedAuthority::from_pem(papers.authority_pem.as_bytes()).ok(),
            ..ClientOptions::default()
        };
        let admin = Client::with([format!("https://{}", server.address)], options).unwrap();
        World { server, papers, authority, admin, _folder: folder }
    }

    /// A client that shows a certificate.
    fn client(&self, (certificate, key): (&str, &str)) -> Client {
        let authority = TrustedAuthority::from_pem(self.papers.authority_pem.as_bytes()).unwrap();
        let shown = authority.with_certificate(certificate.as_bytes(), key.as_bytes()).unwrap();
        let timeout = Duration::from_secs(2);
        let options = ClientOptions { authority: Some(shown), timeout, ..ClientOptions::default() };
        Client::with([format!("https://{}", self.server.address)], options).unwrap()
    }

    async fn record(&self, made: &ClientPapers, name: &str, role: &str) -> TokenMade {
        let certificate = Some(Digest(made.digest.0).to_string());
        let (name, role) = (name.to_owned(), role.to_owned());
        // For ever: the fake node's time is not ours.
        let wanted = NewToken { name, role, certificate, ttl_ms: Some(0), ..NewToken::default() };
        self.admin.create_token(&wanted).await.unwrap()
    }
}

fn ann(cluster: u64, role: Role) -> ClientName {
    ClientName { cluster, role, name: PrincipalName::parse("ann").unwrap() }
}

fn make(authority: &Authority, name: &ClientName) -> ClientPapers {
    ClientPapers::make(authority, name, SystemTime::now() + HOUR).unwrap()
}

async fn code_of(client: &Client) -> String {
    match client.whoami().await {
        Ok(whoami) => format!("{} {}", whoami.name, whoami.role),
        Err(error) => error.code().unwrap_or("no answer").to_owned(),
    }
}

#[tokio::test]
async fn x_17_a_recorded_certificate_is_as_good_as_a_token_until_it_is_revoked() {
    let world = World::new().await;
    let made = make(&world.authority, &ann(7, Role::Submitter));
    let client = world.client(made.reveal());
    assert_eq!(code_of(&client).await, "unauthenticated", "nobody recorded it");
    let recorded = world.record(&made, "ann", "submitter").await;
    assert_eq!(recorded.token, "", "there is nothing to keep");
    assert_eq!(code_of(&client).await, "cert-ann submitter");
    client.enqueue(vec![NewTask::default()]).await.unwrap();
    let refused: Error = client.tokens().await.unwrap_err();
    assert_eq!(refused.code(), Some("forbidden"), "no more than its role");
    world.admin.revoke_token(&recorded.id).await.unwrap();
    assert_eq!(code_of(&client).await, "unauthenticated", "on a connection that was there before");
    let error = client.enqueue(vec![NewTask::default()]).await.unwrap_err();
    assert_eq!(error.code(), Some("unauthenticated"), "pipes as well");
    assert_eq!(code_of(&world.client(made.reveal())).await, "unauthenticated");
    world.server.stop().await;
}

#[tokio::test]
async fn x_2_every_other_certificate_names_nobody() {
    let world = World::new().await;
    let promoted = make(&world.authority, &ann(7, Role::Admin));
    world.record(&promoted, "ann", "viewer").await;
    assert_eq!(code_of(&world.client(promoted.reveal())).await, "unauthenticated", "other role");
    let renamed = make(&world.authority, &ann(7, Role::Viewer));
    world.record(&renamed, "bob", "viewer").await;
    assert_eq!(code_of(&world.client(renamed.reveal())).await, "unauthenticated", "other name");
    let abroad = make(&world.authority, &ann(8, Role::Viewer));
    world.record(&abroad, "ann", "viewer").await;
    assert_eq!(code_of(&world.client(abroad.reveal())).await, "unauthenticated", "other cluster");
    let node = (world.papers.node_pem.as_str(), world.papers.key.reveal());
    assert_eq!(code_of(&world.client(node)).await, "unauthenticated", "a node's");
    let (foreign, _, _) = Authority::make(7).unwrap();
    let foreign = make(&foreign, &ann(7, Role::Viewer));
    world.record(&foreign, "ann", "viewer").await;
    assert_eq!(code_of(&world.client(foreign.reveal())).await, "no answer", "other authority");
    let over = SystemTime::now() - Duration::from_secs(60);
    let over = ClientPapers::make(&world.authority, &ann(7, Role::Viewer), over).unwrap();
    world.record(&over, "ann", "viewer").await;
    assert_eq!(code_of(&world.client(over.reveal())).await, "no answer", "expired");
    world.server.stop().await;
}

#[tokio::test]
async fn x_17_certificates_are_recorded_under_names_of_their_own() {
    let world = World::new().await;
    let wanted = |name: &str, certificate: Option<&str>, s3| NewToken {
        name: name.to_owned(),
        role: "viewer".to_owned(),
        certificate: certificate.map(str::to_owned),
        s3,
        ..NewToken::default()
    };
    let digest = "ab".repeat(32);
    for bad in [
        wanted("cert-ann", None, false),
        wanted("ann", Some("xyz"), false),
        wanted("ann", Some(&digest.to_uppercase()), false),
        wanted("ann", Some(&digest), true),
    ] {
        let error = world.admin.create_token(&bad).await.unwrap_err();
        assert_eq!(error.code(), Some("bad_value"), "{bad:?}");
    }
    world.server.stop().await;
}
