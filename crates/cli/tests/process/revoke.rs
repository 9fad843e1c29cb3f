//! A token that is revoked while a node is cut off (X17).
//!
//! Nodes look at the tokens twice a second, so the five seconds that are promised leave a wide margin; here it is that the
//! majority keeps them although a node is cut off.

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions};
use ikada_api::v1::NewToken;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::Cluster;
use crate::network::Network;
use crate::wait::until;

/// What a node answers to a plain question: its status, and the code of its problem if it has one.
async fn ask(cluster: &Cluster, id: u64, path: &str, token: &str) -> Option<(u16, String)> {
    let address = cluster.node(id).url.replace("http://", "");
    let asking = async {
        let mut stream = TcpStream::connect(&address).await?;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), asking).await.ok()?.ok()?;
    let status = answer.get(9..12)?.parse().ok()?;
    let code = answer.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next());
    Some((status, code.unwrap_or_default().to_owned()))
}

/// A token that was revoked counts for no longer (X17): a promise, so it is asserted.
const PROMISED: Duration = Duration::from_secs(5);

/// Answered by a node from what it has, without asking others.
const STALE: &str = "/v1/tasks?consistency=stale";

async fn answers(cluster: &Cluster, id: u64, token: &str, wanted: (u16, &str)) {
    until(&format!("node {id} answers {wanted:?}"), || async {
        let (status, code) = ask(cluster, id, STALE, token).await?;
        ((status, code.as_str()) == wanted).then_some(())
    })
    .await;
}

fn client(cluster: &Cluster, ids: &[u64], token: &str) -> Client {
    let urls: Vec<String> = ids.iter().map(|id| cluster.node(*id).url.clone()).collect();
    let token = Some(AccessToken::parse(token).expect("a token"));
    Client::with(urls, ClientOptions { token, ..ClientOptions::default() }).expect("urls")
}

#[tokio::test]
async fn x_17_a_token_revoked_during_a_cut_ends_with_the_majority_and_then_everywhere() {
    let Some(network) = Network::make(3) else { return };
    let mut cluster = Cluster::prepare_in(&network, 3, 1);
    for id in 1..=3 {
        let mut program = network.program(id);
        program.env("IKADA_AUTH", "true");
        cluster.launch_by(id, program);
    }
    let file = cluster.node(1).data.join("admin-token");
    let admin = until("the first token is written", || async {
        let text = std::fs::read_to_string(&file).ok()?;
        (!text.is_empty()).then(|| text.trim().to_owned())
    })
    .await;
    let wanted = NewToken { name: "ann".into(), role: "viewer".into(), ..NewToken::default() };
    let root = client(&cluster, &[1, 2, 3], &admin);
    let ann = until("a token is made", || async { root.create_token(&wanted).await.ok() }).await;
    for id in 1..=3 {
        answers(&cluster, id, &ann.token, (200, "")).await;
    }

    network.isolate(3);
    let majority = client(&cluster, &[1, 2], &admin);
    until("the token is revoked", || async { majority.revoke_token(&ann.id).await.ok() }).await;
    let revoked = Instant::now();
    for id in [1, 2] {
        answers(&cluster, id, &ann.token, (401, "unauthenticated")).await;
        let after = revoked.elapsed();
        assert!(after < PROMISED, "node {id} of the majority refused after {after:?}");
    }
    // The node that is cut off cannot know; it has nothing but what is old, and says how old.
    answers(&cluster, 3, &ann.token, (200, "")).await;

    network.heal();
    answers(&cluster, 3, &admin, (200, "")).await;
    answers(&cluster, 3, &ann.token, (401, "unauthenticated")).await;
}
