//! Digests of bytes, alone and in order.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

/// Length of a digest.
const DIGEST_BYTES: usize = 32;

/// BLAKE3 digest of some bytes; written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; DIGEST_BYTES]);

impl Digest {
    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Digest> {
        if text.len() != 2 * DIGEST_BYTES {
            return None;
        }
        let mut bytes = [0; DIGEST_BYTES];
        for (place, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |byte: u8| match byte {
                b'0'..=b'9' => Some(byte - b'0'),
                b'a'..=b'f' => Some(byte - b'a' + 10),
                _ => None,
            };
            *place = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

impl Digest {
    /// Its first eight bytes: enough to guess by, where a wrong guess does no harm.
    pub fn mark(&self) -> u64 {
        self.0[..8].iter().fold(0, |mark, byte| mark << 8 | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl<C> Encode<C> for Digest {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Digest {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        let bytes = decoder.bytes()?.try_into();
        bytes.map(Digest).map_err(|_| DecodeError::message("a digest has 32 bytes"))
    }
}

/// Several digests in order, shared without copying and stored as one run of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests(Arc<[Digest]>);

impl Deref for Digests {
    type Target = [Digest];
    fn deref(&self) -> &[Digest] {
        &self.0
    }
}

impl From<Vec<Digest>> for Digests {
    fn from(digests: Vec<Digest>) -> Self {
        Self(Arc::from(digests))
    }
}

impl<C> Encode<C> for Digests {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        let mut bytes = Vec::with_capacity(self.0.len() * DIGEST_BYTES);
        self.0.iter().for_each(|digest| bytes.extend_from_slice(&digest.0));
        encoder.bytes(&bytes)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Digests {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        let (digests, rest) = decoder.bytes()?.as_chunks::<DIGEST_BYTES>();
        match rest.is_empty() {
            true => Ok(Self(digests.iter().map(|bytes| Digest(*bytes)).collect())),
            false => Err(DecodeError::message("digests have 32 bytes each")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_read_as_they_were_written() {
        let digest = Digest(std::array::from_fn(|position| position as u8 * 7));
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        let text = digest.to_string();
        for bad in ["", &text[1..], &text.to_uppercase(), &text.replace('0', "g")] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
        let both = Digests::from(vec![digest, Digest([9; 32])]);
        let bytes = minicbor::to_vec(&both).unwrap();
        assert_eq!(minicbor::decode::<Digests>(&bytes).unwrap(), both);
        let odd = minicbor::to_vec(minicbor::bytes::ByteVec::from(vec![1; 33])).unwrap();
        assert!(minicbor::decode::<Digests>(&odd).is_err());
    }
}
