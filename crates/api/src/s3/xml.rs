//! The little XML that S3 speaks: writing with escapes, and reading flat documents of known elements.

/// Largest document that is read.
pub const DOCUMENT_BYTES_MAX: usize = 2 << 20;

/// Text that may stand between tags.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Not allowed in XML even when escaped.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// An element with text.
pub fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escape(text))
}

/// The text of every element of a name, in order. Elements of one name do not nest in what S3 sends.
pub fn elements<'a>(document: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = document;
    while let Some(begin) = rest.find(&open) {
        rest = &rest[begin + open.len()..];
        let Some(end) = rest.find(&close) else { break };
        found.push(&rest[..end]);
        rest = &rest[end + close.len()..];
    }
    found
}

/// The text of the first element of a name.
pub fn first(document: &str, name: &str) -> Option<String> {
    elements(document, name).first().and_then(|text| unescape(text.trim()))
}

/// A name as it was before it was escaped; the document's own words if an escape is broken.
pub fn read_name(text: &str) -> Result<String, String> {
    unescape(text).ok_or_else(|| text.to_owned())
}

/// Text as it was before it was escaped; none if an escape is broken.
pub fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        plain.push_str(&rest[..place]);
        let (name, after) = rest[place + 1..].split_once(';')?;
        plain.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            number => {
                let number = number.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)?
            }
        });
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let odd = "a&b<c>\"d\" é";
        assert_eq!(first(&element("Key", odd), "Key").as_deref(), Some(odd));
        let document =
            "<Delete><Object><Key>a</Key></Object><Object><Key>b&#x2f;c</Key></Object></Delete>";
        let keys: Vec<_> = elements(document, "Key").into_iter().map(unescape).collect();
        assert_eq!(keys, [Some("a".to_owned()), Some("b/c".to_owned())]);
        for broken in ["<Key>a", "", "<<<>>>&&&"] {
            assert!(elements(broken, "Key").is_empty());
        }
        assert_eq!(unescape("&nope;"), None);
        assert_eq!(unescape("& "), None);
    }
}
