//! The text of a token, `ikada_<id>_<secret>`, and its making. Nothing here prints a secret.

use std::fmt;

pub use ikada_api::state::S3_NAME;
use ikada_api::state::{SecretDigest, TokenId};

/// Every token begins like this, so that scanners of leaked text can find them.
const MARK: &str = "ikada";
/// Bytes of a secret: 256 bits, so that guessing is hopeless and a plain fast digest is enough.
const SECRET_BYTES: usize = 32;
/// Bytes of a drawn word, as hexadecimal digits twice as many.
const WORD_BYTES: usize = 6;
/// Keeps these digests apart from all others.
const DIGEST_CONTEXT: &str = "ikada 2026 secret of a token";
/// The same for certificates.
const CERTIFICATE_CONTEXT: &str = "ikada 2026 certificate of a client";
/// Longer texts are no tokens of ours.
const TEXT_BYTES_MAX: usize = 160;

/// A secret text. `Debug` shows nothing of it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text that must not be shown.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Draws 256 bits from the system.
    pub fn draw() -> std::io::Result<Secret> {
        draw_hex(SECRET_BYTES).map(Secret)
    }

    /// The text itself, for whoever must send or store it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// A token's two parts.
#[derive(Debug, Clone)]
pub struct TokenText {
    /// Names it.
    pub id: TokenId,
    /// Proves it.
    pub secret: Secret,
}

impl TokenText {
    /// A fresh token.
    pub fn draw() -> std::io::Result<TokenText> {
        let word = draw_word()?;
        let id = TokenId::parse(&word).map_err(std::io::Error::other)?;
        Ok(TokenText { id, secret: Secret::draw()? })
    }

    /// Reads a token's text; none if it is not one.
    pub fn parse(text: &str) -> Option<TokenText> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (id, secret) = text.strip_prefix(MARK)?.strip_prefix('_')?.split_once('_')?;
        let id = TokenId::parse(id).ok()?;
        (!secret.is_empty()).then(|| TokenText { id, secret: Secret(secret.to_owned()) })
    }

    /// The whole text.
    pub fn reveal(&self) -> Secret {
        Secret(format!("{MARK}_{}_{}", self.id, self.secret.reveal()))
    }
}

/// The digest of a secret, as it is stored.
pub fn digest(secret: &Secret) -> SecretDigest {
    SecretDigest(blake3::derive_key(DIGEST_CONTEXT, secret.0.as_bytes()))
}

/// Whether a secret is the one that was stored. The one place where secrets are compared: digests differ in all their bytes
/// at once, and their equality takes the same time wherever they do (X17).
pub fn is_secret_of(shown: &Secret, stored: &SecretDigest) -> bool {
    blake3::Hash::from_bytes(stored.0) == blake3::Hash::from_bytes(digest(shown).0)
}

/// Principals of client certificates are named like this.
pub const CERTIFICATE_NAME: &str = "cert-";

/// The digest of a client's certificate, as it is stored.
pub fn certificate_digest(certificate: &[u8]) -> SecretDigest {
    SecretDigest(blake3::derive_key(CERTIFICATE_CONTEXT, certificate))
}

/// A fresh S3 key: a token that nobody can show, since what is stored of it is drawn and no digest of anything known.
/// Signatures need the secret itself on both sides, so it is the stored word.
pub fn draw_s3_key() -> std::io::Result<SecretDigest> {
    let mut drawn = [0; SECRET_BYTES];
    getrandom::fill(&mut drawn).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(SecretDigest(drawn))
}

/// The secret key of an S3 key, as its owner has it.
pub fn s3_secret(stored: &SecretDigest) -> String {
    stored.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A word that nobody else draws.
pub fn draw_word() -> std::io::Result<String> {
    draw_hex(WORD_BYTES)
}

fn draw_hex(bytes: usize) -> std::io::Result<String> {
    let mut drawn = vec![0; bytes];
    getrandom::fill(&mut drawn).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(drawn.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_6_a_token_returns_from_its_text_and_shows_nothing() {
        let token = TokenText::draw().unwrap();
        let text = token.reveal();
        let again = TokenText::parse(text.reveal()).unwrap();
        assert_eq!(again.id, token.id);
        assert_eq!(digest(&again.secret), digest(&token.secret));
        for shown in [format!("{token:?}"), format!("{text:?}")] {
            assert!(!shown.contains(token.secret.reveal()), "{shown}");
        }
        assert_ne!(TokenText::draw().unwrap().secret.reveal(), token.secret.reveal());
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let long = format!("ikada_a_{}", "b".repeat(400));
        for text in
            ["", "ikada", "ikada_a", "ikada_a_", "ikada__b", "other_a_b", "ikada_a.b_c", &long]
        {
            assert!(TokenText::parse(text).is_none(), "{text}");
        }
    }
}
