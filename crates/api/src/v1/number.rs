//! 64-bit numbers: in JSON written as decimal text, read from text or number; in CBOR plain numbers.
//!
//! JSON readers in browsers lose precision above 2^53; fences, node ids and hashes use all 64 bits.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// A 64-bit number that travels as decimal text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl std::str::FromStr for Number {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Number)
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&self.0)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Number;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number of at most 64 bits, as decimal text")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                // A sign would parse but is never written by us.
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                match text.parse() {
                    Ok(value) if digits => Ok(Number(value)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]{1,20}$",
            "description": "A 64-bit number as decimal text."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_trip_as_text() {
        let text = serde_json::to_string(&Number(u64::MAX)).unwrap();
        assert_eq!(text, "\"18446744073709551615\"");
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), Number(u64::MAX));
        assert_eq!(serde_json::from_str::<Number>("7").unwrap(), Number(7));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in
            ["-1", "1.5", "\"\"", "\"+1\"", "\"-1\"", "\"18446744073709551616\"", "null", "[]"]
        {
            assert!(serde_json::from_str::<Number>(bad).is_err(), "{bad}");
        }
    }
}
