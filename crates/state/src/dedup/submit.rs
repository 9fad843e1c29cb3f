//! A remembered submission. There may be as many as waiting tasks and more, so that each byte of one counts.

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use super::{Outcome, RingEntry};
use crate::hash::{RecordKind, digest_bytes};

/// One remembered submission, cancel or settings change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubmitEntry {
    pub(crate) key: [u64; 2],
    pub(crate) body_hash: u64,
    pub(crate) outcome: Outcome,
    place: TimeAndSlot,
}

/// A log time and perhaps a slot in one word: fields of their own would cost eight bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeAndSlot(u64);

const SLOT_BITS: u32 = 16;
/// Stands for no slot; there are far fewer slots than this.
const NO_SLOT: u64 = u16::MAX as u64;
/// The latest time that can be told, in the year 10889. Later ones are remembered as this.
const TIME_MAX_MS: u64 = u64::MAX >> SLOT_BITS;

impl TimeAndSlot {
    fn new(time_ms: u64, slot: Option<u16>) -> Self {
        Self(time_ms.min(TIME_MAX_MS) << SLOT_BITS | slot.map_or(NO_SLOT, u64::from))
    }

    fn time_ms(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    fn slot(self) -> Option<u16> {
        let slot = self.0 & NO_SLOT;
        (slot != NO_SLOT).then_some(slot as u16)
    }
}

impl SubmitEntry {
    /// An entry about a task in this slot, or about none.
    pub(crate) fn new(
        key: [u64; 2],
        body_hash: u64,
        time_ms: u64,
        outcome: Outcome,
        slot: Option<u16>,
    ) -> Self {
        Self { key, body_hash, outcome, place: TimeAndSlot::new(time_ms, slot) }
    }

    /// Slot of the task it was about, with which it moves.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.place.slot()
    }
}

impl RingEntry for SubmitEntry {
    fn key(&self) -> [u64; 2] {
        self.key
    }
    fn time_ms(&self) -> u64 {
        self.place.time_ms()
    }
    fn digest(&self, number: u64) -> u64 {
        let (kind, detail) = self.outcome.words();
        let kind = kind | self.slot().map_or(0, |slot| u64::from(slot) + 1) << 16;
        let [high, low] = self.key;
        let words = [number, high, low, self.body_hash, self.time_ms(), kind, detail];
        let mut bytes = [0u8; 56];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        digest_bytes(RecordKind::Submit, &bytes)
    }
}

/// As it is written: time and slot apart.
#[derive(Encode, Decode)]
struct Written {
    #[n(0)]
    key: [u64; 2],
    #[n(1)]
    body_hash: u64,
    #[n(2)]
    time_ms: u64,
    #[n(3)]
    outcome: Outcome,
    #[n(4)]
    slot: Option<u16>,
}

impl<C> Encode<C> for SubmitEntry {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        let (key, body_hash, outcome) = (self.key, self.body_hash, self.outcome);
        Written { key, body_hash, time_ms: self.time_ms(), outcome, slot: self.slot() }
            .encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for SubmitEntry {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        let written = Written::decode(decoder, context)?;
        let Written { key, body_hash, time_ms, outcome, slot } = written;
        Ok(Self::new(key, body_hash, time_ms, outcome, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small_and_comes_back_whole() {
        assert_eq!(size_of::<SubmitEntry>(), 48, "a million waiting tasks have a million of these");
        for slot in [None, Some(0), Some(4_095)] {
            for time_ms in [0, 1, 1_763_000_000_000, TIME_MAX_MS] {
                let outcome = Outcome::QueueSet { version: 7 };
                let entry = SubmitEntry::new([1, 2], 3, time_ms, outcome, slot);
                assert_eq!((entry.time_ms(), entry.slot()), (time_ms, slot));
                let bytes = minicbor::to_vec(&entry).unwrap();
                assert_eq!(minicbor::decode::<SubmitEntry>(&bytes).unwrap(), entry);
            }
        }
        let late = SubmitEntry::new([1, 2], 3, u64::MAX, Outcome::Cancelled, Some(9));
        assert_eq!((late.time_ms(), late.slot()), (TIME_MAX_MS, Some(9)));
    }
}
