//! Base URLs, query text, and request ids that nobody else draws.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use super::BadUrl;

/// `http://host:port` or `https://host:port` of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Reads a base URL; a bare `host:port` is taken as http.
    pub fn parse(text: &str) -> Result<BaseUrl, BadUrl> {
        let refuse = |rule| BadUrl { url: without_secrets(text).chars().take(80).collect(), rule };
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: hyper::Uri =
            full.parse().map_err(|_| refuse("must look like http://host:port"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => "http",
            Some("https") => "https",
            _ => return Err(refuse("must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("must name a host"))?;
        if uri.path() != "/" || uri.query().is_some() {
            return Err(refuse("must not have a path or query"));
        }
        if authority.as_str().contains('@') {
            return Err(refuse("must not carry credentials"));
        }
        Ok(BaseUrl(format!("{scheme}://{authority}")))
    }

    /// `host:port`; port 80 or 443 when the URL names none.
    pub fn authority(&self) -> String {
        let authority = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        authority_of(authority, self.is_secure())
    }

    /// Whether it is spoken to by TLS.
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// The URL as text, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A URL as it may be told: without what may be a password or a key in it, however it is broken otherwise.
pub(crate) fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?.."),
        None => (rest, ""),
    };
    // A question mark may stand in a password as well.
    let place = url.rsplit_once('@').map(|(_, place)| place.split('?').next().unwrap_or(place));
    let colon = if scheme.is_empty() { "" } else { "://" };
    match place {
        Some(place) => format!("{scheme}{colon}..@{place}{query}"),
        None => format!("{scheme}{colon}{rest}{query}"),
    }
}

/// `host:port` with the port that a scheme stands for.
pub(crate) fn authority_of(authority: &str, secure: bool) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let port = if secure { 443 } else { 80 };
    if has_port { authority.to_owned() } else { format!("{authority}:{port}") }
}

/// Appends `name=value` pairs to a path, escaped.
pub(crate) fn with_query(path: &str, pairs: &[(&str, String)]) -> String {
    let mut full = path.to_owned();
    for (position, (name, value)) in pairs.iter().enumerate() {
        full.push(if position == 0 { '?' } else { '&' });
        full.push_str(name);
        full.push('=');
        full.push_str(&escape(value));
    }
    full
}

/// Escapes one path segment or query value.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'~' => {
                escaped.push(byte as char);
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// 64 bits that another process or call does not draw. The standard library seeds its hash keys from the operating
/// system; a counter keeps calls of one process apart.
pub(crate) fn unique_bits() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    if let Ok(age) = std::time::SystemTime::UNIX_EPOCH.elapsed() {
        hasher.write_u128(age.as_nanos());
    }
    hasher.finish()
}

/// A fresh request id.
pub fn unique_key() -> String {
    format!("{:016x}{:016x}", unique_bits(), unique_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    // A billion ids of 128 random bits share one with a chance of about 1 in 10^21.
    #[test]
    fn b4_14_ids_are_128_random_bits() {
        let many: std::collections::BTreeSet<String> = (0..10_000).map(|_| unique_key()).collect();
        assert_eq!(many.len(), 10_000);
        assert!(many.iter().all(|key| u128::from_str_radix(key, 16).is_ok() && key.len() == 32));
        // Every bit is drawn: none is the same in all of them.
        let bits = || many.iter().filter_map(|key| u128::from_str_radix(key, 16).ok());
        assert_eq!(bits().fold(u128::MAX, |all, key| all & key), 0);
        assert_eq!(bits().fold(0, |all, key| all | key), u128::MAX);
    }

    #[test]
    fn base_urls_are_checked() {
        assert_eq!(BaseUrl::parse("127.0.0.1:7400").unwrap().as_str(), "http://127.0.0.1:7400");
        assert_eq!(BaseUrl::parse("http://a:1/").unwrap().as_str(), "http://a:1");
        let secure = BaseUrl::parse("https://a").unwrap();
        assert_eq!((secure.as_str(), secure.authority().as_str()), ("https://a", "a:443"));
        for bad in ["", "ftp://a:1", "http://a:1/v1", "http://a:1/?x=1", "http://u:p@a:1", "ht tp"]
        {
            assert!(BaseUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn x_6_a_refused_url_is_told_without_its_secrets() {
        for (url, told) in [
            ("http://ann:CANARY@a:1", "http://..@a:1"),
            ("http://ann:CAN@ARY@a:1/v1", "http://..@a:1/v1"),
            ("http://ann:CAN?ARY@a:1", "http://..@a:1?.."),
            ("ann:CANARY@a:1", "..@a:1"),
            ("ftp://CANARY@a", "ftp://..@a"),
            ("http://a:1/?token=CANARY", "http://a:1/?.."),
            ("http://a b:CANARY@c", "http://..@c"),
            ("ht tp", "ht tp"),
        ] {
            let refused = BaseUrl::parse(url).expect_err(url);
            assert_eq!(refused.url, told, "{url}");
            assert!(!refused.to_string().contains("CAN"), "{refused}");
        }
    }

    #[test]
    fn queries_are_escaped() {
        let pairs = [("after", "a b&c".to_owned()), ("limit", "5".to_owned())];
        assert_eq!(with_query("/v1/tasks", &pairs), "/v1/tasks?after=a%20b%26c&limit=5");
    }

    #[test]
    fn keys_differ() {
        let keys: std::collections::BTreeSet<String> = (0..10_000).map(|_| unique_key()).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
