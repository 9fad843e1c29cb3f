//! Tokens: make, list, revoke; and who this client is.

use hyper::Method;

use super::send::Ask;
use super::url::escape;
use super::{Client, Error};
use crate::v1::{NewToken, TokenMade, TokenPage, TokenRevoked, Whoami};

impl Client {
    /// Makes a token. Its text is in the answer and nowhere else.
    pub async fn create_token(&self, token: &NewToken) -> Result<TokenMade, Error> {
        self.ask(&Ask::json(Method::POST, "/v1/tokens".to_owned(), token, None)?).await
    }

    /// All tokens.
    pub async fn tokens(&self) -> Result<TokenPage, Error> {
        self.ask(&Ask::get("/v1/tokens".to_owned())).await
    }

    /// Ends a token; refused everywhere within 5 s.
    pub async fn revoke_token(&self, id: &str) -> Result<TokenRevoked, Error> {
        let path = format!("/v1/tokens/{}", escape(id));
        self.ask(&Ask::act(Method::DELETE, path, None)).await
    }

    /// Who this client is to the node that answers.
    pub async fn whoami(&self) -> Result<Whoami, Error> {
        self.ask(&Ask::get("/v1/whoami".to_owned())).await
    }
}
