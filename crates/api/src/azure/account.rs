//! Whose store it is, and by what right it is asked: an account's key, or a token that was given out for some of it.
//!
//! Both come from the environment alone, and neither is ever shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::sign::{VERSION, VERSION_HEADER, sign_request};

/// Longest name of an account that is taken; Azure's own have at most 24 letters.
const NAME_BYTES_MAX: usize = 63;

/// An account of Azure's store.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    name: String,
    right: Right,
}

#[derive(Clone, PartialEq, Eq)]
enum Right {
    /// The account's key, decoded.
    Key(Vec<u8>),
    /// A shared access signature: parameters that stand in every address.
    Token(String),
}

impl Account {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameters that must stand in every address.
    pub(crate) fn parameters(&self) -> Option<&str> {
        match &self.right {
            Right::Key(_) => None,
            Right::Token(token) => Some(token),
        }
    }

    /// Signs a request for a body of this length, unless its address bears the right. Says what cannot stand in a header.
    pub(crate) fn sign(
        &self,
        parts: &mut Parts,
        body_bytes: usize,
        now_ms: u64,
    ) -> Result<(), &'static str> {
        let version = HeaderValue::from_static(VERSION);
        parts.headers.insert(HeaderName::from_static(VERSION_HEADER), version);
        match &self.right {
            Right::Key(key) => sign_request(parts, &self.name, key, body_bytes, now_ms),
            Right::Token(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The account that the variables name; what is missing or wrong is added to a list.
pub(crate) fn read_account(
    given: impl Fn(&str) -> Option<String>,
    wrong: &mut Vec<String>,
) -> Option<Account> {
    let name = given("AZURE_STORAGE_ACCOUNT").map(|name| name.trim().to_owned());
    let plain = |name: &String| {
        name.len() <= NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match &name {
        None => wrong.push("AZURE_STORAGE_ACCOUNT is not set: whose store is it?".to_owned()),
        Some(name) if !plain(name) => {
            wrong.push("AZURE_STORAGE_ACCOUNT must be letters and digits".to_owned());
        }
        Some(_) => {}
    }
    let right = read_right(given, wrong)?;
    Some(Account { name: name.filter(plain)?, right })
}

fn read_right(given: impl Fn(&str) -> Option<String>, wrong: &mut Vec<String>) -> Option<Right> {
    if let Some(key) = given("AZURE_STORAGE_KEY") {
        let key = STANDARD.decode(key.trim()).ok().filter(|key| !key.is_empty());
        if key.is_none() {
            wrong.push("AZURE_STORAGE_KEY must be the account's key in base64".to_owned());
        }
        return key.map(Right::Key);
    }
    let Some(token) = given("AZURE_STORAGE_SAS_TOKEN") else {
        let rule = "AZURE_STORAGE_KEY is not set, nor AZURE_STORAGE_SAS_TOKEN";
        wrong.push(format!("{rule}: the store asks for a key"));
        return None;
    };
    let token = token.trim().trim_start_matches('?');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%=&:+/,".contains(&byte);
    if token.is_empty() || !token.bytes().all(plain) {
        wrong.push("AZURE_STORAGE_SAS_TOKEN must be the parameters of an address".to_owned());
        return None;
    }
    Some(Right::Token(token.to_owned()))
}
