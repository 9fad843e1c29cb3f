//! Which headers of S3 a call may bear.
//!
//! Promise: a call whose headers ask for what this door does not do is refused by name. Taken for a plain call, an object
//! that should be encrypted or shared would just be stored, and a removal with a condition would be one without.

use hyper::HeaderMap;

use super::fault::Fault;

/// Headers that are understood, or change nothing that is stored or told.
const KNOWN: [&str; 23] = [
    "x-amz-api-version",
    "x-amz-bypass-governance-retention",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-none-match",
    "x-amz-copy-source-range",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-metadata-directive",
    "x-amz-mp-object-size",
    "x-amz-optional-object-attributes",
    "x-amz-request-payer",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-security-token",
    "x-amz-storage-class",
    "x-amz-tagging-directive",
    "x-amz-te",
    "x-amz-trailer",
    "x-amz-user-agent",
    "x-amz-checksum-algorithm",
    "x-amz-checksum-mode",
    "x-amz-checksum-type",
];

/// Words of access that are no more than what a role gives anyway.
const PRIVATE: [&str; 2] = ["private", "bucket-owner-full-control"];

/// Refuses what a call's headers ask for and this door does not do.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Fault> {
    for (name, value) in headers {
        check_one(name.as_str(), value.to_str().unwrap_or("\u{fffd}"))?;
    }
    Ok(())
}

/// The same of one, which a presigned address may have among its parameters. Its name is in lower case.
pub(super) fn check_one(name: &str, value: &str) -> Result<(), Fault> {
    let Some(word) = name.strip_prefix("x-amz-") else { return Ok(()) };
    let is_known = match word {
        "acl" => PRIVATE.contains(&value),
        // None, said aloud.
        "tagging" => value.is_empty(),
        _ => KNOWN.contains(&name) || word.starts_with("checksum-") || word.starts_with("meta-"),
    };
    if is_known { Ok(()) } else { Err(Fault::unsupported(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str) -> bool {
        check_one(name, value).is_err_and(|fault| fault.code == "NotImplemented")
    }

    #[test]
    fn what_would_not_be_done_is_refused() {
        for (name, value) in [
            ("x-amz-server-side-encryption", "AES256"),
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            ("x-amz-copy-source-server-side-encryption-customer-key", "k"),
            ("x-amz-acl", "public-read"),
            ("x-amz-grant-read", "id=a"),
            ("x-amz-tagging", "a=b"),
            ("x-amz-object-lock-mode", "GOVERNANCE"),
            ("x-amz-write-offset-bytes", "5"),
            ("x-amz-if-match-size", "5"),
            ("x-amz-copy-source-if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("x-amz-expected-bucket-owner", "111122223333"),
            ("x-amz-website-redirect-location", "/x"),
            ("x-amz-new-in-ten-years", "1"),
        ] {
            assert!(refused(name, value), "{name}");
        }
        for (name, value) in [
            ("x-amz-acl", "private"),
            ("x-amz-tagging", ""),
            ("x-amz-meta-mtime", "1"),
            ("x-amz-checksum-crc32", "AAAAAA=="),
            ("x-amz-date", "20130524T000000Z"),
            ("content-type", "text/plain"),
        ] {
            assert!(!refused(name, value), "{name}");
        }
    }
}
