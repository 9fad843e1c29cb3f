//! Bounded reading and writing of small binary records.
//!
//! Promises: reading is total (any bytes give a value or a [`DecodeError`], never a panic) and allocates no more
//! than the input could justify. Integers are little-endian base-128 with at most ten bytes and one spelling each.
//! Leaves out: checksums and framing, which belong to the log and the connection.

use std::ops::Range;

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("input ends inside a value")]
    Truncated,
    /// An integer is too long or has a needless last byte.
    #[error("integer is not in its shortest form")]
    Integer,
    /// Bytes follow the last value.
    #[error("bytes follow the last value")]
    Trailing,
    /// A value is not one of those known, or breaks a rule.
    #[error("{0} is not valid")]
    Invalid(&'static str),
    /// A length or number is over its limit.
    #[error("{0} is over its limit")]
    Limit(&'static str),
}

/// Terms and indexes stay below this, so that sums of a few of them cannot overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// Appends `value` in base 128.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a count and the numbers.
pub(crate) fn put_list(out: &mut Vec<u8>, list: &[u64]) {
    put(out, list.len() as u64);
    for item in list {
        put(out, *item);
    }
}

/// A position in an input.
pub(crate) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Reader { input, at: 0 }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = *self.input.get(self.at).ok_or(DecodeError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a byte that must be 0 or 1.
    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Invalid(what)),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(DecodeError::Integer);
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return match byte == 0 && shift > 0 {
                    true => Err(DecodeError::Integer),
                    false => Ok(value),
                };
            }
        }
        Err(DecodeError::Integer)
    }

    /// Reads a term, an index or another number that may be added to.
    pub(crate) fn bounded(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match self.number()? {
            value if value < NUMBER_MAX => Ok(value),
            _ => Err(DecodeError::Limit(what)),
        }
    }

    /// Reads a length and returns where the bytes lie, so that the caller can share them.
    pub(crate) fn span(
        &mut self,
        limit: usize,
        what: &'static str,
    ) -> Result<Range<usize>, DecodeError> {
        let length = self.count(limit, what)?;
        let range = self.at..self.at + length;
        self.at = range.end;
        Ok(range)
    }

    /// Reads a count of things that take at least one byte each.
    pub(crate) fn count(&mut self, limit: usize, what: &'static str) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.number()?).map_err(|_| DecodeError::Limit(what))?;
        if count > limit {
            return Err(DecodeError::Limit(what));
        }
        if count > self.input.len() - self.at {
            return Err(DecodeError::Truncated);
        }
        Ok(count)
    }

    pub(crate) fn list(
        &mut self,
        limit: usize,
        what: &'static str,
    ) -> Result<Vec<u64>, DecodeError> {
        let count = self.count(limit, what)?;
        (0..count).map(|_| self.number()).collect()
    }

    /// Ends the reading: nothing may be left.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.at == self.input.len() {
            true => Ok(()),
            false => Err(DecodeError::Trailing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), NUMBER_MAX, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.number(), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
        }
        assert_eq!(Reader::new(&[0x80, 0]).number(), Err(DecodeError::Integer));
        assert_eq!(Reader::new(&[0xff; 11]).number(), Err(DecodeError::Integer));
        assert_eq!(Reader::new(&[0x80]).number(), Err(DecodeError::Truncated));
    }

    #[test]
    fn a_count_larger_than_the_input_is_refused_before_allocating() {
        let mut out = Vec::new();
        put(&mut out, 1_000_000);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.count(usize::MAX, "list"), Err(DecodeError::Truncated));
    }
}
