//! Where an object lies in an object store: `s3://bucket/key`, `gs://bucket/key` or `az://container/blob`.

use std::fmt;

/// Longest name of a bucket.
const BUCKET_BYTES_MAX: usize = 63;
/// Longest name of an object, as S3 has it.
const KEY_BYTES_MAX: usize = 1_024;

/// Whose door is asked when no endpoint is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `s3://`: Amazon's, or whatever endpoint is set.
    Amazon,
    /// `gs://`: Google's, which speaks the same protocol with HMAC keys.
    Google,
    /// `az://`: Azure's, which speaks a protocol of its own ([`crate::azure`]).
    Azure,
}

/// An object in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlace {
    /// Whose door.
    pub door: Door,
    /// The bucket.
    pub bucket: String,
    /// The name in it.
    pub key: String,
}

/// A text that names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {rule}")]
pub struct BadPlace {
    text: String,
    rule: &'static str,
}

impl StorePlace {
    /// Reads an address of an object store. None if the text has no scheme, as names of files do.
    pub fn parse(text: &str) -> Option<Result<StorePlace, BadPlace>> {
        let (scheme, rest) = text.split_once("://")?;
        Some(StorePlace::read(scheme, rest).map_err(|rule| {
            let text = text.chars().take(200).collect();
            BadPlace { text, rule }
        }))
    }

    /// Reads what addresses of a store may begin with: a bucket, and perhaps the beginning of names in it. None if the
    /// text has no scheme.
    pub fn parse_beginning(text: &str) -> Option<Result<StorePlace, BadPlace>> {
        let (scheme, rest) = text.split_once("://")?;
        // Whatever is good with a letter more is a good beginning.
        let (bucket, beginning) = rest.split_once('/').unwrap_or((rest, ""));
        let whole = StorePlace::read(scheme, &format!("{bucket}/{beginning}x"));
        Some(match whole {
            Ok(place) => Ok(StorePlace { key: beginning.to_owned(), ..place }),
            Err(rule) => Err(BadPlace { text: text.chars().take(200).collect(), rule }),
        })
    }

    fn read(scheme: &str, rest: &str) -> Result<StorePlace, &'static str> {
        let door = match scheme {
            "s3" => Door::Amazon,
            "gs" => Door::Google,
            "az" => Door::Azure,
            _ => {
                return Err(
                    "object stores are named by s3://bucket/key, gs://bucket/key or az://container/blob",
                );
            }
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if bucket.is_empty() || bucket.len() > BUCKET_BYTES_MAX || !bucket.bytes().all(plain) {
            return Err("the bucket must be 1 to 63 letters, digits, dots, dashes or underscores");
        }
        if key.is_empty() || key.ends_with('/') {
            return Err("an object must be named, not a folder: s3://bucket/key");
        }
        if key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control) {
            return Err("the key must be at most 1024 bytes without control characters");
        }
        Ok(StorePlace { door, bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.door {
            Door::Amazon => "s3",
            Door::Google => "gs",
            Door::Azure => "az",
        };
        write!(formatter, "{scheme}://{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_files_and_bad_ones_refused() {
        for good in ["s3://b/k", "gs://b-1.x/a/b c.ikada", "az://c/k"] {
            assert_eq!(StorePlace::parse(good).unwrap().unwrap().to_string(), good);
        }
        for file in ["monday.ikada", "/a/b", "./s3:/b/k", "s3:b"] {
            assert!(StorePlace::parse(file).is_none(), "{file}");
        }
        let long = format!("s3://b/{}", "k".repeat(1_025));
        for bad in
            ["s3://", "s3://b", "s3://b/", "s3://b/k/", "s3:///k", "s3://b?/k", "abfs://b/k", &long]
        {
            assert!(StorePlace::parse(bad).unwrap().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_beginning_may_be_a_bucket_or_a_folder() {
        for (text, key) in
            [("s3://b", ""), ("s3://b/", ""), ("gs://b/k/", "k/"), ("az://c/k/l", "k/l")]
        {
            assert_eq!(StorePlace::parse_beginning(text).unwrap().unwrap().key, key, "{text}");
        }
        for bad in ["s3://", "s3:///k", "s3://b?/k", "http://b/k"] {
            assert!(StorePlace::parse_beginning(bad).unwrap().is_err(), "{bad}");
        }
        assert!(StorePlace::parse_beginning("texts/").is_none());
    }
}
