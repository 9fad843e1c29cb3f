//! Writes a message in the form that `decode.rs` reads.
//!
//! Layout: version, kind, flags, shard, from, to, term, then the numbers, the context, and by flag the entries
//! or the snapshot's point. Every number is in base 128, so that a heartbeat takes some twenty bytes.

use crate::conf::Conf;
use crate::entry::{Entry, engine_weight};
use crate::message::{Message, MessageKind};
use crate::wire;

/// First byte of every message; raised with any change of the layout.
pub(super) const VERSION: u8 = 1;
/// Flag: the answer is a refusal.
pub(super) const REFUSAL: u8 = 1;
/// Flag: the sender's log is damaged.
pub(super) const REPAIRING: u8 = 2;

pub(super) fn encode(message: &Message, out: &mut Vec<u8>) {
    let inner = &message.inner;
    let entries: u64 = inner.entries.iter().map(engine_weight).sum();
    out.reserve(64 + entries as usize);
    out.push(VERSION);
    out.push(message.kind as u8);
    out.push(flags(message));
    let zigzag = ((inner.priority << 1) ^ (inner.priority >> 63)) as u64;
    let numbers = [
        u64::from(message.shard),
        inner.from,
        inner.to,
        inner.term,
        inner.log_term,
        inner.index,
        inner.commit,
        inner.commit_term,
        inner.reject_hint,
        zigzag,
    ];
    for number in numbers {
        wire::put(out, number);
    }
    wire::put_bytes(out, &inner.context);
    match message.kind {
        MessageKind::Append => encode_entries(message, out),
        MessageKind::Snapshot => encode_snapshot(message, out),
        _ => {}
    }
}

fn flags(message: &Message) -> u8 {
    let refusal = if message.inner.reject { REFUSAL } else { 0 };
    let repairing = if message.is_repairing { REPAIRING } else { 0 };
    refusal | repairing
}

fn encode_entries(message: &Message, out: &mut Vec<u8>) {
    // Indexes follow from the message's own, so they are not written.
    wire::put(out, message.inner.entries.len() as u64);
    for entry in message.inner.entries.iter() {
        let entry = Entry::from_engine(entry);
        out.push(entry.kind.number());
        wire::put(out, entry.term);
        wire::put_bytes(out, &entry.context);
        wire::put_bytes(out, &entry.data);
    }
}

fn encode_snapshot(message: &Message, out: &mut Vec<u8>) {
    let meta = message.inner.get_snapshot().get_metadata();
    wire::put(out, meta.index);
    wire::put(out, meta.term);
    Conf::from_engine(meta.get_conf_state()).encode(out);
}
