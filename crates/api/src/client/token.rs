//! The token a client shows. Printing it shows nothing.

use std::fmt;
use std::sync::Arc;

/// A text that no token can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is empty or holds blanks or strange characters; copy it again")]
pub struct BadToken;

/// A token's text.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(Arc<str>);

impl AccessToken {
    /// The value of the `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Reads a token; blanks around it, as files have them, do not count.
    pub fn parse(text: &str) -> Result<AccessToken, BadToken> {
        let text = text.trim();
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if plain { Ok(AccessToken(text.into())) } else { Err(BadToken) }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_6_a_token_is_not_printed() {
        let token = AccessToken::parse(" ikada_a_secret\n").unwrap();
        assert_eq!(token.bearer(), "Bearer ikada_a_secret");
        assert!(!format!("{token:?}").contains("secret"));
        assert_eq!(AccessToken::parse("a\r\nb"), Err(BadToken));
    }
}
