//! Digests that a caller sends with its bytes, and whether they fit.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use ring::digest;

use super::fault::Fault;
use super::sign::Payload;

/// A digest that this door can compute. Others (CRC-64, MD5) are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Crc32,
    Crc32c,
    Sha1,
    Sha256,
}

const KINDS: [(&str, Kind); 4] = [
    ("x-amz-checksum-crc32", Kind::Crc32),
    ("x-amz-checksum-crc32c", Kind::Crc32c),
    ("x-amz-checksum-sha1", Kind::Sha1),
    ("x-amz-checksum-sha256", Kind::Sha256),
];

enum State {
    Crc32(u32),
    Crc32c(u32),
    Ring(Box<digest::Context>),
}

/// The digests of one body, computed as it comes.
pub(super) struct Sums {
    /// Name of the header, what is wanted (absent: it comes at the end), and how far it is.
    sums: Vec<(&'static str, Option<Vec<u8>>, State)>,
    /// The digest of the whole body that was signed.
    whole: Option<([u8; 32], digest::Context)>,
}

impl Sums {
    /// What the headers promise of the whole object that an upload ends as. A sum of sums says nothing of its bytes.
    pub(super) fn of_object(headers: &HeaderMap) -> Result<Sums, Fault> {
        let kind = headers.get("x-amz-checksum-type").and_then(|kind| kind.to_str().ok());
        match kind {
            Some("FULL_OBJECT") => Sums::read(headers, None),
            _ => Ok(Sums::of_signature(None)),
        }
    }

    /// What the signature promises of a body, and nothing else.
    pub(super) fn of_signature(payload: Option<&Payload>) -> Sums {
        let whole = match payload {
            Some(Payload::Whole(wanted)) => Some((*wanted, digest::Context::new(&digest::SHA256))),
            _ => None,
        };
        Sums { sums: Vec::new(), whole }
    }

    /// What the headers promise of the body.
    pub(super) fn read(headers: &HeaderMap, payload: Option<&Payload>) -> Result<Sums, Fault> {
        let trailer = headers.get("x-amz-trailer").and_then(|value| value.to_str().ok());
        let mut sums = Vec::new();
        for (name, kind) in KINDS {
            let wanted = match headers.get(name) {
                Some(value) => {
                    let text = value.to_str().ok().and_then(|text| STANDARD.decode(text).ok());
                    Some(text.ok_or_else(|| Fault::argument(format!("{name} is not base64")))?)
                }
                None if trailer.is_some_and(|trailer| trailer.eq_ignore_ascii_case(name)) => None,
                None => continue,
            };
            sums.push((name, wanted, kind.begin()));
        }
        Ok(Sums { sums, ..Sums::of_signature(payload) })
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for (_, _, state) in &mut self.sums {
            match state {
                State::Crc32(sum) => *sum = crc32(*sum, bytes),
                State::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
                State::Ring(context) => context.update(bytes),
            }
        }
        if let Some((_, context)) = &mut self.whole {
            context.update(bytes);
        }
    }

    /// Takes a digest that came after the bytes.
    pub(super) fn promise(&mut self, name: &str, value: &str) {
        for (known, wanted, _) in &mut self.sums {
            if known.eq_ignore_ascii_case(name) {
                // What cannot be read matches nothing.
                *wanted = Some(STANDARD.decode(value.trim()).unwrap_or_default());
            }
        }
    }

    /// Whether all fit.
    pub(super) fn check(self) -> Result<(), Fault> {
        for (name, wanted, state) in self.sums {
            let found = match state {
                State::Crc32(sum) | State::Crc32c(sum) => sum.to_be_bytes().to_vec(),
                State::Ring(context) => context.finish().as_ref().to_vec(),
            };
            if wanted.as_ref() != Some(&found) {
                return Err(Fault::digest(&format!("{name} does not fit the bytes that arrived")));
            }
        }
        match self.whole {
            Some((wanted, context)) => {
                if context.finish().as_ref() == wanted {
                    return Ok(());
                }
                let detail =
                    "the bytes that arrived are not those that were signed; nothing was stored";
                Err(Fault::new(400, "XAmzContentSHA256Mismatch", detail))
            }
            None => Ok(()),
        }
    }
}

impl Kind {
    fn begin(self) -> State {
        match self {
            Kind::Crc32 => State::Crc32(0),
            Kind::Crc32c => State::Crc32c(0),
            Kind::Sha1 => {
                State::Ring(Box::new(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)))
            }
            Kind::Sha256 => State::Ring(Box::new(digest::Context::new(&digest::SHA256))),
        }
    }
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

static TABLE: [u32; 256] = table();

/// The checksum of zip and Ethernet, continued.
fn crc32(sum: u32, bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)];
    !bytes.iter().fold(!sum, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_everybody_means() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
    }
}
