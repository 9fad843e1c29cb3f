//! Reads an entry. Total: any bytes give a frame or an error, and nothing is allocated on the word
//! of a length field alone.

use super::brief::{is_unknown_brief, read_brief};
use super::{HEADER_BYTES, VERSION};
use crate::Order;
use crate::limits::BATCH_ORDERS_MAX;

/// Why an entry is refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The version is not known.
    #[error("batch version {0} is not known")]
    Version(u8),
    /// The entry ends early, or bytes are left over.
    #[error("batch frame does not match its length")]
    Length,
    /// The frame announces too many orders.
    #[error("batch holds too many orders")]
    Count,
}

impl FrameError {
    /// Whether a newer version wrote the entry.
    pub(crate) fn is_newer(self) -> bool {
        matches!(self, FrameError::Version(version) if version > VERSION)
    }
}

/// A checked frame: log time and the bytes of each order.
pub(crate) struct Frame<'a> {
    pub(crate) time_ms: u64,
    count: usize,
    rest: &'a [u8],
}

/// Splits off a length-prefixed part.
fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Checks the whole frame before any order is applied.
pub(crate) fn read_frame(entry: &[u8]) -> Result<Frame<'_>, FrameError> {
    if entry.len() < HEADER_BYTES {
        return Err(FrameError::Length);
    }
    if entry[0] != VERSION {
        return Err(FrameError::Version(entry[0]));
    }
    let (time, rest) = entry[1..].split_first_chunk::<8>().ok_or(FrameError::Length)?;
    let (count, rest) = rest.split_first_chunk::<4>().ok_or(FrameError::Length)?;
    let count = u32::from_le_bytes(*count) as usize;
    if count > BATCH_ORDERS_MAX {
        return Err(FrameError::Count);
    }
    let mut left = rest;
    for _ in 0..count {
        left = split_part(left).ok_or(FrameError::Length)?.1;
    }
    if !left.is_empty() {
        return Err(FrameError::Length);
    }
    Ok(Frame { time_ms: u64::from_le_bytes(*time), count, rest })
}

impl<'a> Frame<'a> {
    /// Number of orders.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The bytes of each order.
    pub(crate) fn orders(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut left = self.rest;
        std::iter::from_fn(move || {
            let (part, rest) = split_part(left)?;
            left = rest;
            Some(part)
        })
    }
}

/// Decodes one order; none if it is malformed, of an unknown kind or followed by other bytes.
pub(crate) fn decode_order(bytes: &[u8]) -> Option<Order> {
    if let Some(order) = read_brief(bytes) {
        return order;
    }
    let mut decoder = minicbor::Decoder::new(bytes);
    let order = decoder.decode::<Order>().ok()?;
    (decoder.position() == bytes.len()).then_some(order)
}

/// Whether an order that does not decode has a form, a kind or a variant that only a newer version knows.
#[cold]
pub(crate) fn is_newer_order(bytes: &[u8]) -> bool {
    if bytes.first().is_some_and(|first| is_unknown_brief(*first)) {
        return true;
    }
    let decoded = minicbor::Decoder::new(bytes).decode::<Order>();
    decoded.is_err_and(|error| error.is_unknown_variant())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, Cancel, Command, Namespace, TaskId};

    fn order() -> Order {
        let id = TaskId::parse("t").unwrap();
        let command = Command::Cancel(Cancel { id });
        Order { namespace: Namespace::default(), request: None, command }
    }

    #[test]
    fn a_batch_comes_back_as_built() {
        let mut builder = BatchBuilder::new();
        builder.push(&order());
        builder.push(&order());
        assert_eq!(builder.len(), 2);
        let entry = builder.finish(77);
        let frame = read_frame(&entry).unwrap();
        assert_eq!((frame.time_ms, frame.len()), (77, 2));
        for bytes in frame.orders() {
            assert_eq!(decode_order(bytes), Some(order()));
        }
    }

    #[test]
    fn broken_frames_are_refused_whole() {
        let mut builder = BatchBuilder::new();
        builder.push(&order());
        let entry = builder.finish(1);
        for length in 0..entry.len() {
            assert!(read_frame(&entry[..length]).is_err());
        }
        let mut longer = entry.clone();
        longer.push(0);
        assert_eq!(read_frame(&longer).err(), Some(FrameError::Length));
        let mut other = entry;
        other[0] = 9;
        assert_eq!(read_frame(&other).err(), Some(FrameError::Version(9)));
    }

    #[test]
    fn an_unknown_kind_does_not_decode() {
        let mut bytes = minicbor::to_vec(order()).unwrap();
        let kind = bytes.iter().position(|byte| *byte == 7).unwrap();
        bytes[kind] = 23;
        assert_eq!(decode_order(&bytes), None);
        assert!(!is_newer_order(&bytes), "the body of another kind");
        let mut newer = bytes.clone();
        // The number 240.
        newer.splice(kind..=kind, [0x18, 240]);
        assert_eq!(decode_order(&newer), None);
        assert!(is_newer_order(&newer), "a kind that only a later version has");
        bytes[kind] = 7;
        bytes.push(0);
        assert_eq!(decode_order(&bytes), None);
        assert!(!is_newer_order(&bytes), "merely broken");
        assert!(is_newer_order(&[9, 1, 2]), "a short form that only a later version has");
        assert!(!is_newer_order(&[1]) && !is_newer_order(&[]), "merely broken");
    }
}
