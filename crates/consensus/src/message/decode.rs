//! Reads a message that a peer sent. This is the trust boundary of the crate.
//!
//! Promises: total and bounded; what it returns is well formed (known kind, numbers far from overflow, entries
//! without gaps and with rising terms, a membership that can be loaded). Entry payloads are slices of the input.
//! Leaves out: whether the message fits this node's state (see `shard/step.rs`).

use bytes::Bytes;
use raft::eraftpb;

use super::encode::{REFUSAL, REPAIRING, VERSION};
use super::{Message, MessageKind};
use crate::conf::Conf;
use crate::config::ShardId;
use crate::entry::{Entry, EntryKind};
use crate::wire::{DecodeError, Reader};

/// The engine's contexts are a read round or the word for a transfer.
const CONTEXT_MAX: usize = 64;
/// A change of membership that names the largest allowed number of nodes fits.
const ENTRY_CONTEXT_MAX: usize = 64 << 10;
/// Larger than any batch that the replica builds.
const ENTRY_DATA_MAX: usize = 256 << 20;
/// Entries in one message.
const ENTRIES_MAX: usize = 1 << 20;

pub(super) fn decode(bytes: &Bytes) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != VERSION {
        return Err(DecodeError::Invalid("message version"));
    }
    let kind =
        MessageKind::from_number(reader.byte()?).ok_or(DecodeError::Invalid("message kind"))?;
    let flags = reader.byte()?;
    if flags & !(REFUSAL | REPAIRING) != 0 {
        return Err(DecodeError::Invalid("message flags"));
    }
    let shard = ShardId::try_from(reader.number()?).map_err(|_| DecodeError::Limit("shard"))?;
    let mut inner = eraftpb::Message::default();
    inner.set_msg_type(kind.to_engine());
    inner.reject = flags & REFUSAL != 0;
    inner.from = reader.number()?;
    inner.to = reader.number()?;
    inner.term = reader.bounded("term")?;
    inner.log_term = reader.bounded("log term")?;
    inner.index = reader.bounded("index")?;
    inner.commit = reader.bounded("commit")?;
    inner.commit_term = reader.bounded("commit term")?;
    inner.reject_hint = reader.bounded("hint")?;
    let zigzag = reader.number()?;
    inner.priority = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
    inner.context = bytes.slice(reader.span(CONTEXT_MAX, "context")?);
    check_header(&inner)?;
    match kind {
        MessageKind::Append => decode_entries(bytes, &mut reader, &mut inner)?,
        MessageKind::Snapshot => decode_snapshot(&mut reader, &mut inner)?,
        _ => {}
    }
    reader.finish()?;
    Ok(Message { shard, kind, is_repairing: flags & REPAIRING != 0, inner })
}

fn check_header(inner: &eraftpb::Message) -> Result<(), DecodeError> {
    if inner.from == 0 || inner.to == 0 {
        return Err(DecodeError::Invalid("node 0"));
    }
    // The engine takes term 0 for a local message and would skip its checks.
    if inner.term == 0 {
        return Err(DecodeError::Invalid("term 0"));
    }
    Ok(())
}

fn decode_entries(
    bytes: &Bytes,
    reader: &mut Reader<'_>,
    inner: &mut eraftpb::Message,
) -> Result<(), DecodeError> {
    let count = reader.count(ENTRIES_MAX, "entries")?;
    let mut entries = Vec::with_capacity(count);
    let mut last_term = inner.log_term;
    for offset in 0..count as u64 {
        let kind =
            EntryKind::from_number(reader.byte()?).ok_or(DecodeError::Invalid("entry kind"))?;
        let term = reader.bounded("entry term")?;
        if term < last_term || term > inner.term || term == 0 {
            return Err(DecodeError::Invalid("entry term"));
        }
        last_term = term;
        let context = bytes.slice(reader.span(ENTRY_CONTEXT_MAX, "entry context")?);
        let data = bytes.slice(reader.span(ENTRY_DATA_MAX, "entry data")?);
        let index = inner.index + 1 + offset;
        entries.push(Entry { term, index, kind, data, context }.into_engine());
    }
    inner.set_entries(entries.into());
    Ok(())
}

fn decode_snapshot(
    reader: &mut Reader<'_>,
    inner: &mut eraftpb::Message,
) -> Result<(), DecodeError> {
    let index = reader.bounded("snapshot index")?;
    let term = reader.bounded("snapshot term")?;
    let conf = Conf::read(reader)?;
    if index == 0 || term == 0 || term > inner.term || conf.is_empty() {
        return Err(DecodeError::Invalid("snapshot point"));
    }
    let meta = inner.mut_snapshot().mut_metadata();
    meta.index = index;
    meta.term = term;
    meta.set_conf_state(conf.to_engine());
    Ok(())
}
