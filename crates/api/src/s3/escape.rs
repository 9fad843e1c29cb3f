//! Percent escapes as S3 wants them, and digests as text.

/// Undoes percent escapes; none if one is broken.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
                digit(bytes.next()?)? << 4 | digit(bytes.next()?)?
            }
            other => other,
        });
    }
    Some(plain)
}

/// Escapes all but what needs none.
pub fn encode(bytes: &[u8]) -> String {
    encode_but(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// Escapes a path, whose slashes stay.
pub fn encode_path(bytes: &[u8]) -> String {
    encode_but(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte))
}

fn encode_but(bytes: &[u8], plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match plain(*byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of 32 bytes that was written in hexadecimal digits; none if it is something else.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_return() {
        let odd = "a b/%é+~";
        assert_eq!(decode(&encode(odd.as_bytes())).unwrap(), odd.as_bytes());
        assert_eq!(encode(b"a b/"), "a%20b%2F");
        assert_eq!(encode_path(b"a b/"), "a%20b/");
        for bad in ["%", "%4", "%zz"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn digests_are_read_whole_or_not_at_all() {
        assert_eq!(unhex(&hex(&[7; 32])), Some([7; 32]));
        for bad in ["", "07", &"0g".repeat(32), &"é".repeat(32)] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
