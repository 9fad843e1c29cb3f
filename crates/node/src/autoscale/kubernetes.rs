//! The driver `kubernetes`: sets the number of replicas of a workload by its scale subresource.
//!
//! One request by hand over hyper, with the service account's token and authority: a whole client library would bring more
//! code than the rest of the node for these few lines. Pods that go are told to stop (SIGTERM), and workers drain then.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use ikada_api::socket::Socket;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;

use super::Wish;

/// Where Kubernetes puts a pod's papers.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// One request may take this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The API server, and the papers to show it.
#[derive(Debug, Clone)]
pub struct ApiServer {
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The authority of its certificate; none speaks plain HTTP (tests).
    pub authority: Option<PathBuf>,
    /// Where the token is; read anew for each request, as it changes.
    pub token: PathBuf,
}

impl ApiServer {
    /// The API server of the cluster that this pod runs in.
    pub fn of_pod() -> Result<ApiServer, String> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                format!("{name} is not set; the driver `kubernetes` works inside a pod only")
            })
        };
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        Ok(ApiServer {
            host: variable("KUBERNETES_SERVICE_HOST")?,
            port: port.parse().map_err(|_| format!("KUBERNETES_SERVICE_PORT {port} is no port"))?,
            authority: Some(PathBuf::from(ACCOUNT).join("ca.crt")),
            token: PathBuf::from(ACCOUNT).join("token"),
        })
    }
}

/// Scales one workload.
#[derive(Debug)]
pub struct KubernetesDriver {
    /// Whom to ask.
    pub server: ApiServer,
    /// Namespace of the workload.
    pub namespace: String,
    /// Kind, in the plural of the API: `deployments` or `statefulsets`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl KubernetesDriver {
    /// Reads `namespace/name` or `namespace/kind/name`.
    pub fn read(text: &str, server: ApiServer) -> Result<KubernetesDriver, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [namespace, name] => (namespace, "deployments", name),
            [namespace, kind @ ("deployments" | "statefulsets"), name] => (namespace, kind, name),
            _ => {
                return Err(format!("{text} is not namespace/name or namespace/statefulsets/name"));
            }
        };
        let is_name = |part: &str| {
            !part.is_empty()
                && part.len() <= 253
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
        };
        if !is_name(namespace) || !is_name(name) {
            return Err(format!("{text} holds a name that Kubernetes does not allow"));
        }
        let (namespace, kind, name) = (namespace.into(), kind.into(), name.into());
        Ok(KubernetesDriver { server, namespace, kind, name })
    }

    /// Sets the number of replicas.
    pub async fn scale(&self, wish: &Wish) -> Result<(), String> {
        match tokio::time::timeout(PATIENCE, self.patch(wish.desired)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("the API server took longer than {} s", PATIENCE.as_secs())),
        }
    }

    async fn patch(&self, replicas: u32) -> Result<(), String> {
        let token = std::fs::read_to_string(&self.server.token)
            .map_err(|error| format!("token {}: {error}", self.server.token.display()))?;
        let path = format!(
            "/apis/apps/v1/namespaces/{}/{}/{}/scale",
            self.namespace, self.kind, self.name
        );
        let body = format!("{{\"spec\":{{\"replicas\":{replicas}}}}}");
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("host", format!("{}:{}", self.server.host, self.server.port))
            .header("authorization", format!("Bearer {}", token.trim()))
            .header("content-type", "application/merge-patch+json")
            .header("accept", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| format!("request: {error}"))?;
        let socket = connect(&self.server).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| format!("API server: {error}"))?;
        let carrier = tokio::spawn(connection);
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| format!("API server: {error}"))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        carrier.abort();
        if status.is_success() {
            return Ok(());
        }
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let why: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = why["message"].as_str().unwrap_or("without a word");
        Err(format!("API server: {status}: {message}"))
    }
}

async fn connect(server: &ApiServer) -> Result<Socket, String> {
    let address = (server.host.as_str(), server.port);
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| format!("API server {}:{}: {error}", server.host, server.port))?;
    let Some(authority) = &server.authority else {
        return Ok(Socket::Plain(stream));
    };
    let unread =
        |error: &dyn std::fmt::Display| format!("authority {}: {error}", authority.display());
    let pem = std::fs::read(authority).map_err(|error| unread(&error))?;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unread(&error))?;
        roots.add(certificate).map_err(|error| unread(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(server.host.clone())
        .map_err(|error| format!("host {}: {error}", server.host))?;
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| format!("API server: {error}"))?;
    Ok(Socket::Tls(Box::new(stream.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// An API server that answers one request and tells what it was asked.
    async fn fake(
        answer: &'static str,
    ) -> (ApiServer, tokio::task::JoinHandle<String>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "secret\n").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            while !text.contains("}}") {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).await.unwrap();
                text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            text
        });
        (ApiServer { host: "127.0.0.1".into(), port, authority: None, token }, asked, folder)
    }

    fn wish() -> Wish {
        Wish { desired: 5, current: 2, reason: String::new() }
    }

    #[tokio::test]
    async fn b4_23_the_scale_of_a_workload_is_set() {
        let (server, asked, _folder) = fake("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let driver = KubernetesDriver::read("prod/workers", server).unwrap();
        driver.scale(&wish()).await.unwrap();
        let asked = asked.await.unwrap();
        assert!(
            asked.starts_with("PATCH /apis/apps/v1/namespaces/prod/deployments/workers/scale ")
        );
        assert!(asked.to_lowercase().contains("authorization: bearer secret\r\n"), "{asked}");
        assert!(asked.ends_with("{\"spec\":{\"replicas\":5}}"), "{asked}");
    }

    #[tokio::test]
    async fn a_refusal_is_repeated_in_words() {
        let answer =
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 27\r\n\r\n{\"message\":\"may not scale\"}";
        let (server, _, _folder) = fake(answer).await;
        let driver = KubernetesDriver::read("prod/statefulsets/workers", server).unwrap();
        let error = driver.scale(&wish()).await.unwrap_err();
        assert!(error.contains("403") && error.contains("may not scale"), "{error}");
    }

    #[test]
    fn names_that_would_leave_the_path_are_refused() {
        let server =
            || ApiServer { host: String::new(), port: 1, authority: None, token: PathBuf::new() };
        for bad in ["workers", "a/b/c", "a/../b", "A/b", "a/b?x", "/b", "a/"] {
            assert!(KubernetesDriver::read(bad, server()).is_err(), "{bad}");
        }
    }
}
