//! Where an object lies in an object store: `s3://bucket/key` or `gs://bucket/key`.

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

    fn read(scheme: &str, rest: &str) -> Result<StorePlace, &'static str> {
        let door = match scheme {
            "s3" => Door::Amazon,
            "gs" => Door::Google,
            _ => return Err("object stores are named by s3://bucket/key or gs://bucket/key"),
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
        };
        write!(formatter, "{scheme}://{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_files_and_bad_ones_refused() {
        for good in ["s3://b/k", "gs://b-1.x/a/b c.ikada"] {
            assert_eq!(StorePlace::parse(good).unwrap().unwrap().to_string(), good);
        }
        for file in ["monday.ikada", "/a/b", "./s3:/b/k", "s3:b"] {
            assert!(StorePlace::parse(file).is_none(), "{file}");
        }
        let long = format!("s3://b/{}", "k".repeat(1_025));
        for bad in
            ["s3://", "s3://b", "s3://b/", "s3://b/k/", "s3:///k", "s3://b?/k", "az://b/k", &long]
        {
            assert!(StorePlace::parse(bad).unwrap().is_err(), "{bad}");
        }
    }
}
