//! `BUCKET/KEY`, and what a file's name says about its content.

use crate::failure::Failure;

/// Splits `BUCKET/KEY`; the key may be empty.
pub(crate) fn split(text: &str) -> Result<(&str, &str), Failure> {
    let (bucket, key) = text.split_once('/').unwrap_or((text, ""));
    match bucket.is_empty() {
        true => Err(Failure::usage(format!("{text:?} names no bucket; write BUCKET/KEY"))),
        false => Ok((bucket, key)),
    }
}

/// The key of one object.
pub(super) fn one(text: &str) -> Result<(&str, &str), Failure> {
    match split(text)? {
        (_, "") => Err(Failure::usage(format!("{text:?} names no object; write BUCKET/KEY"))),
        named => Ok(named),
    }
}

/// What the names in a folder begin with: `a` is the folder `a/`, and not all that begins with `a`.
pub(super) fn folder(key: &str) -> String {
    match key.is_empty() || key.ends_with('/') {
        true => key.to_owned(),
        false => format!("{key}/"),
    }
}

/// The last part of a key or path.
pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What a file is, by its ending.
pub(super) fn content_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "txt" | "log" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "wasm" => "application/wasm",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_split() {
        assert_eq!(split("b/a/c").unwrap(), ("b", "a/c"));
        assert_eq!(split("b").unwrap(), ("b", ""));
        assert_eq!(["", "a", "a/", "a/b"].map(folder), ["", "a/", "a/", "a/b/"]);
        assert!(split("/a").is_err() && one("b/").is_err());
        assert_eq!(last_part("a/b.txt"), "b.txt");
    }
}
