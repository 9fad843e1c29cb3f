//! What comes in on the peer port, and the texts and certificates by which callers and nodes are known.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use ikada_api::routes::{find, read_query};
use ikada_replica::consensus::Message;
use ikada_replica::founding::{FoundingMessage, Plan};
use ikada_replica::peer;
use minicbor::{Decode, Encode};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;

use crate::auth::TokenText;
use crate::gossip::Gossip;
use crate::objects::{BlobAsk, BlobTold};
use crate::peers::{Opening, Welcome, decode, encode, read_frame};
use crate::tls::{ClientName, JoinAnswer, JoinAsk, JoinToken, Name, Shown, name_of, node_of};

/// Longest frame that is read from a fuzzer.
const FRAME_BYTES_MAX: usize = 1 << 16;

/// Tokens, names in certificates, paths and queries.
pub fn pre_auth_texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(token) = TokenText::parse(&text) {
        assert_eq!(token.reveal().reveal(), text.as_ref(), "one token, one text");
    }
    if let Some(name) = Name::parse(&text) {
        assert_eq!(name.to_string(), text.as_ref(), "one node, one text");
    }
    if let Some(name) = ClientName::parse(&text) {
        assert_eq!(name.to_string(), text.as_ref(), "one client, one text");
    }
    if let Some(token) = JoinToken::parse(&text) {
        let again = JoinToken::parse(token.reveal().reveal()).map(|again| again.id);
        assert_eq!(again, Some(token.id), "what a join token says is read again");
    }
    for method in ["GET", "POST", "PUT", "DELETE", &text] {
        let _ = find(method, &text);
    }
    let _ = read_query(&text);
    let _ = ikada_api::s3::sign::read_time(&text);
    let _ = ikada_api::s3::StorePlace::parse(&text);
}

/// The first words on a connection between nodes.
pub fn pre_auth_frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(frame) = next_frame(&mut rest) {
        read_opening(&frame);
    }
    read_opening(bytes);
}

/// The next whole frame of what came on a socket.
fn next_frame(rest: &mut &[u8]) -> Option<Bytes> {
    let reading = pin!(read_frame(rest, FRAME_BYTES_MAX));
    // Bytes in memory are always ready.
    match reading.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(frame) => frame.ok().flatten(),
        Poll::Pending => None,
    }
}

fn read_opening(bytes: &[u8]) {
    read_again::<Opening>(bytes);
    read_again::<Welcome>(bytes);
    if let Some(message) = FoundingMessage::decode(bytes) {
        let again = FoundingMessage::decode(&message.encode());
        assert_eq!(again.as_ref(), Some(&message), "a founding message is read again");
    }
    let _ = Plan::decode(bytes);
}

/// Reads a message; what was read must come back when it is written and read again.
fn read_again<T>(bytes: &[u8])
where
    T: for<'b> Decode<'b, ()> + Encode<()> + PartialEq + std::fmt::Debug,
{
    if let Some(message) = decode::<T>(bytes) {
        let again = decode::<T>(&encode(&message));
        assert_eq!(again.as_ref(), Some(&message), "a message is read again");
    }
}

/// Frames of a link: consensus, questions, answers, snapshots.
pub fn pre_auth_links(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(message) = Message::decode(bytes.clone()) {
        let mut written = Vec::new();
        message.encode(&mut written);
        let mut again = Vec::new();
        if let Ok(message) = Message::decode(written.clone().into()) {
            message.encode(&mut again);
        }
        assert_eq!(again, written, "a message of consensus is read again");
    }
    if let Ok((_, messages)) = peer::open(bytes.clone()) {
        messages.of_engine().for_each(drop);
    }
    let _ = peer::decode(bytes);
}

/// Wishes for a certificate, and the answers.
pub fn pre_auth_join(bytes: &[u8]) {
    let mut rest = bytes;
    let frame = next_frame(&mut rest).unwrap_or_default();
    for bytes in [bytes, &frame] {
        if let Ok(ask) = minicbor::decode::<JoinAsk>(bytes) {
            let written = minicbor::to_vec(&ask).unwrap_or_default();
            assert!(minicbor::decode::<JoinAsk>(&written).is_ok(), "a wish is read again");
        }
        let _ = minicbor::decode::<JoinAnswer>(bytes);
    }
}

/// Gossip, and questions about blobs.
pub fn pre_auth_gossip(bytes: &[u8]) {
    read_again::<BlobAsk>(bytes);
    read_again::<BlobTold>(bytes);
    let (asked, told) = (decode::<BlobAsk>(bytes), decode::<BlobTold>(bytes));
    let ((Some(BlobAsk::Gossip(facts)), _) | (_, Some(BlobTold::Gossip(facts)))) = (asked, told)
    else {
        return;
    };
    let (gossip, now) = (Gossip::default(), Instant::now());
    let members: Vec<u64> = facts.iter().map(|fact| fact.node).take(3).collect();
    gossip.hear(&facts, &members, now);
    gossip.hear(&facts, &members, now);
    let known = gossip.facts(now);
    assert!(known.len() <= members.len(), "only members are spoken of");
    for fact in known {
        let _ = fact.load();
    }
}

/// Certificates of nodes and clients, as they are shown in a handshake.
pub fn pre_auth_certificates(bytes: &[u8]) {
    let certificate = CertificateDer::from(bytes);
    let _ = ParsedCertificate::try_from(&certificate);
    let client = Shown::of(&certificate).name;
    let node = name_of(&certificate);
    assert!(client.is_none() || node.is_none(), "a client is no node");
    let shown = node_of(&certificate);
    assert!(shown.is_none_or(|shown| Some(shown.name) == node), "one certificate, one name");
}
