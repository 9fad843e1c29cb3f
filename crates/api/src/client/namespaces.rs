//! Namespaces: how much they may take, and how much they have.

use hyper::Method;

use super::send::Ask;
use super::url::escape;
use super::{Client, Error};
use crate::v1::{NamespaceInfo, NamespacePage, QuotaBody};

impl Client {
    /// All namespaces that have a quota, a queue or an object.
    pub async fn namespaces(&self) -> Result<NamespacePage, Error> {
        self.ask(&Ask::get("/v1/namespaces".to_owned())).await
    }

    /// One namespace.
    pub async fn namespace(&self, name: &str) -> Result<NamespaceInfo, Error> {
        self.ask(&Ask::get(format!("/v1/namespaces/{}", escape(name)))).await
    }

    /// The namespace that this client works in.
    pub async fn quota(&self) -> Result<NamespaceInfo, Error> {
        self.ask(&Ask::get("/v1/quota".to_owned())).await
    }

    /// Changes a namespace's quota, and shows it as it then is. Sent again, it changes nothing more.
    pub async fn set_quota(&self, name: &str, quota: &QuotaBody) -> Result<NamespaceInfo, Error> {
        let path = format!("/v1/namespaces/{}", escape(name));
        self.ask(&Ask::json(Method::PUT, path, quota, None)?).await
    }
}
