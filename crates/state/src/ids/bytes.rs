//! Opaque bytes shared between the state, replies and snapshots without copying.

use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

/// Immutable bytes; cloning costs one counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBytes(Arc<[u8]>);

impl Deref for SharedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::from(bytes))
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl Default for SharedBytes {
    fn default() -> Self {
        Self(Arc::from(&[][..]))
    }
}

impl<C> Encode<C> for SharedBytes {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for SharedBytes {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        Ok(Self(Arc::from(decoder.bytes()?)))
    }
}
