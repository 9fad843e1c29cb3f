//! The codec keeps every field, shares payloads, and refuses all else without a panic.

use super::*;
use crate::entry::{Entry, EntryKind};

fn engine(kind: MessageType) -> eraftpb::Message {
    let mut inner = eraftpb::Message::default();
    inner.set_msg_type(kind);
    inner.from = 3;
    inner.to = u64::MAX;
    inner.term = 9;
    inner.log_term = 7;
    inner.index = 1000;
    inner.commit = 999;
    inner.commit_term = 6;
    inner.reject_hint = 12;
    inner.priority = -5;
    inner.context = Bytes::from_static(b"CampaignTransfer");
    inner
}

fn append() -> Message {
    let mut inner = engine(MessageType::MsgAppend);
    let entry = |offset: u64, kind, size: usize| Entry {
        term: 8,
        index: 1000 + offset,
        kind,
        data: Bytes::from(vec![offset as u8; size]),
        context: Bytes::from_static(b"context"),
    };
    let entries = [entry(1, EntryKind::Normal, 0), entry(2, EntryKind::Change, 5000)];
    inner.set_entries(entries.map(Entry::into_engine).to_vec().into());
    Message::from_engine(12, true, inner).expect("appends are for peers")
}

fn snapshot() -> Message {
    let mut inner = engine(MessageType::MsgSnapshot);
    let meta = inner.mut_snapshot().mut_metadata();
    meta.index = 500;
    meta.term = 5;
    meta.set_conf_state(Conf::of_voters([1, 2, 3]).to_engine());
    Message::from_engine(12, false, inner).expect("snapshots are for peers")
}

fn encoded(message: &Message) -> Bytes {
    let mut out = Vec::new();
    message.encode(&mut out);
    Bytes::from(out)
}

#[test]
fn every_kind_survives_its_encoding() {
    for (_, engine_kind) in KINDS {
        let message = match engine_kind {
            MessageType::MsgAppend => append(),
            MessageType::MsgSnapshot => snapshot(),
            other => {
                let mut inner = engine(other);
                inner.reject = true;
                Message::from_engine(65535, false, inner).expect("listed kinds are for peers")
            }
        };
        assert_eq!(Message::decode(encoded(&message)), Ok(message));
    }
}

#[test]
fn local_kinds_have_no_encoding() {
    use MessageType::*;
    let local = [
        MsgHup,
        MsgBeat,
        MsgPropose,
        MsgUnreachable,
        MsgSnapStatus,
        MsgCheckQuorum,
        MsgTransferLeader,
        MsgReadIndex,
        MsgReadIndexResp,
    ];
    for kind in local {
        assert!(Message::from_engine(0, false, engine(kind)).is_none());
    }
}

#[test]
fn payloads_are_slices_of_the_input() {
    let bytes = encoded(&append());
    let inside = bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len();
    let message = Message::decode(bytes).expect("own encoding");
    assert!(inside.contains(&(message.inner.entries[1].data.as_ptr() as usize)));
}

#[test]
fn every_prefix_is_refused() {
    for message in [append(), snapshot()] {
        let bytes = encoded(&message);
        for length in 0..bytes.len() {
            assert!(Message::decode(bytes.slice(..length)).is_err(), "prefix {length}");
        }
    }
}

#[test]
fn flipped_and_random_bytes_never_panic() {
    let mut rng = fastrand::Rng::with_seed(7);
    for message in [append(), snapshot()] {
        let bytes = encoded(&message);
        for _ in 0..5000 {
            let mut copy = bytes.to_vec();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..copy.len().min(120));
                copy[at] = rng.u8(..);
            }
            if let Ok(read) = Message::decode(Bytes::from(copy)) {
                assert!(read.term() > 0 && read.from() > 0);
            }
        }
    }
    for _ in 0..5000 {
        let noise: Vec<u8> = (0..rng.usize(..80)).map(|_| rng.u8(..)).collect();
        let _ = Message::decode(Bytes::from(noise));
    }
}
