//! The driver `kubernetes`: sets the number of replicas of a workload by its scale subresource.
//!
//! Two requests by hand over hyper, with the service account's token and authority: a whole client library would bring more
//! code than the rest of the node for these few lines. Pods that go are told to stop (SIGTERM), and workers drain then.
//!
//! Promise: what is set is the number of all pods, so it is lowered only where they are known to be the autoscaler's own: there are
//! no more replicas than workers with its label, or as many as this driver has set itself (some may still be starting).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use ikada_api::socket::Socket;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;

use super::{OWN_LABEL, Wish};

/// Where Kubernetes puts a pod's papers.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Looking and setting may take this long together.
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
    /// The number that was set last; two while it is unknown whether the newest was taken.
    set: Mutex<Vec<u32>>,
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
        Ok(KubernetesDriver { server, namespace, kind, name, set: Mutex::default() })
    }

    /// Sets the number of replicas, unless some of those that are there may be somebody else's.
    pub async fn scale(&self, wish: &Wish) -> Result<(), String> {
        match tokio::time::timeout(PATIENCE, self.look_and_set(wish)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("the API server took longer than {} s", PATIENCE.as_secs())),
        }
    }

    async fn look_and_set(&self, wish: &Wish) -> Result<(), String> {
        let present = self.look().await?;
        let may_end_others = present > wish.current && wish.desired < present;
        if may_end_others && !self.known().contains(&present) {
            let (own, (name, value)) = (wish.current, OWN_LABEL);
            let variable = "IKADA_WORKER_LABEL";
            return Err(format!(
                "the workload has {present} replicas, of which {own} told the label {name}={value}; \
                 set {variable}={name}={value} in its pod template, or wait if some are still starting; \
                 nothing was changed"
            ));
        }
        *self.known() = vec![present, wish.desired];
        let body = format!("{{\"spec\":{{\"replicas\":{}}}}}", wish.desired);
        let (status, answer) = self.ask(Method::PATCH, "", body).await?;
        succeeded(status, &answer)?;
        *self.known() = vec![wish.desired];
        Ok(())
    }

    /// How many replicas the workload shall have by now.
    async fn look(&self) -> Result<u32, String> {
        let mut told = self.ask(Method::GET, "", String::new()).await?;
        if told.0 == StatusCode::FORBIDDEN {
            // A role that allows no more than to set it: setting nothing, and that as a trial, tells as well.
            told = self.ask(Method::PATCH, "?dryRun=All", "{}".to_owned()).await?;
        }
        let (status, answer) = told;
        succeeded(status, &answer)?;
        // The API leaves zeros out.
        let spec = answer.get("spec").and_then(serde_json::Value::as_object);
        let replicas =
            spec.and_then(|spec| spec.get("replicas").map_or(Some(0), serde_json::Value::as_u64));
        let replicas = replicas.and_then(|replicas| u32::try_from(replicas).ok());
        replicas.ok_or_else(|| "API server: its answer holds no number of replicas".to_owned())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request about the scale of the workload.
    async fn ask(
        &self,
        method: Method,
        query: &str,
        body: String,
    ) -> Result<(StatusCode, serde_json::Value), String> {
        let token = std::fs::read_to_string(&self.server.token)
            .map_err(|error| format!("token {}: {error}", self.server.token.display()))?;
        let path = format!(
            "/apis/apps/v1/namespaces/{}/{}/{}/scale{query}",
            self.namespace, self.kind, self.name
        );
        let request = Request::builder()
            .method(method)
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
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

fn succeeded(status: StatusCode, answer: &serde_json::Value) -> Result<(), String> {
    if status.is_success() {
        return Ok(());
    }
    let message = answer["message"].as_str().unwrap_or("without a word");
    Err(format!("API server: {status}: {message}"))
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

    /// An API server that answers so many requests in turn, each with a status and a body, and tells what it was asked.
    async fn fake(
        answers: &'static [(&'static str, &'static str)],
    ) -> (ApiServer, tokio::task::JoinHandle<Vec<String>>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "secret\n").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let mut asked = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = String::new();
                let is_whole = |text: &str| match text.starts_with("PATCH") {
                    true => text.ends_with('}'),
                    false => text.ends_with("\r\n\r\n"),
                };
                while !is_whole(&text) {
                    let mut bytes = [0; 4096];
                    let count = stream.read(&mut bytes).await.unwrap();
                    assert!(count > 0, "the request ends early: {text}");
                    text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
                }
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
                asked.push(text);
            }
            asked
        });
        (ApiServer { host: "127.0.0.1".into(), port, authority: None, token }, asked, folder)
    }

    fn wish(current: u32, desired: u32) -> Wish {
        Wish { desired, current, reason: String::new() }
    }

    const TWO: &str = r#"{"spec":{"replicas":2}}"#;
    const FIVE: &str = r#"{"spec":{"replicas":5}}"#;
    const TWENTY: &str = r#"{"spec":{"replicas":20}}"#;

    #[tokio::test]
    async fn b4_23_the_scale_of_a_workload_is_set() {
        let (server, asked, _folder) = fake(&[("200 OK", TWO), ("200 OK", FIVE)]).await;
        let driver = KubernetesDriver::read("prod/workers", server).unwrap();
        driver.scale(&wish(2, 5)).await.unwrap();
        let asked = asked.await.unwrap();
        let path = "/apis/apps/v1/namespaces/prod/deployments/workers/scale ";
        assert!(asked[0].starts_with(&format!("GET {path}")), "{asked:?}");
        assert!(asked[1].starts_with(&format!("PATCH {path}")), "{asked:?}");
        for asked in &asked {
            assert!(asked.to_lowercase().contains("authorization: bearer secret\r\n"), "{asked}");
        }
        assert!(asked[1].ends_with("{\"spec\":{\"replicas\":5}}"), "{asked:?}");
    }

    // The number is that of all pods: with those of somebody else among them, setting it would end them.
    #[tokio::test]
    async fn b4_23_a_workload_with_pods_that_did_not_tell_the_label_is_left_alone() {
        let answers = &[("200 OK", TWENTY), ("200 OK", TWENTY), ("200 OK", TWENTY)];
        let (server, asked, _folder) = fake(answers).await;
        let driver = KubernetesDriver::read("prod/workers", server).unwrap();
        for current in [0, 0, 19] {
            let error = driver.scale(&wish(current, 1)).await.unwrap_err();
            let words = format!(
                "the workload has 20 replicas, of which {current} told the label ikada.autoscaled=true; \
                 set IKADA_WORKER_LABEL="
            );
            assert!(error.starts_with(&words), "{error}");
        }
        let asked = asked.await.unwrap();
        assert!(asked.iter().all(|asked| asked.starts_with("GET ")), "{asked:?}");
    }

    #[tokio::test]
    async fn b4_23_pods_that_this_driver_asked_for_may_still_be_starting() {
        let answers = &[
            ("200 OK", TWO),
            ("500 Internal Server Error", "{}"),
            // It was taken all the same.
            ("200 OK", FIVE),
            ("200 OK", TWENTY),
            ("200 OK", TWENTY),
            ("200 OK", FIVE),
            ("200 OK", TWENTY),
        ];
        let (server, asked, _folder) = fake(answers).await;
        let driver = KubernetesDriver::read("prod/workers", server).unwrap();
        assert!(driver.scale(&wish(2, 5)).await.is_err());
        driver.scale(&wish(2, 20)).await.unwrap();
        driver.scale(&wish(3, 5)).await.unwrap();
        let error = driver.scale(&wish(3, 5)).await.unwrap_err();
        assert!(error.contains("20 replicas"), "somebody else has raised it: {error}");
        assert_eq!(asked.await.unwrap().len(), answers.len());
    }

    #[tokio::test]
    async fn b4_23_a_role_that_may_only_set_the_scale_is_enough() {
        let refused = r#"{"message":"may not get"}"#;
        // None at all: the API leaves zeros out.
        let none = r#"{"spec":{}}"#;
        let answers = vec![("403 Forbidden", refused), ("200 OK", none), ("200 OK", FIVE)];
        let (server, asked, _folder) = fake(answers.leak()).await;
        let driver = KubernetesDriver::read("prod/workers", server).unwrap();
        driver.scale(&wish(0, 5)).await.unwrap();
        let asked = asked.await.unwrap();
        assert!(asked[1].starts_with("PATCH ") && asked[1].contains("/scale?dryRun=All "));
        assert!(asked[1].ends_with("\r\n\r\n{}"), "{asked:?}");
    }

    #[tokio::test]
    async fn a_refusal_is_repeated_in_words() {
        let refused = r#"{"message":"may not scale"}"#;
        let answers = vec![("200 OK", TWO), ("403 Forbidden", refused), ("200 OK", "{}")];
        let (server, asked, _folder) = fake(answers.leak()).await;
        let driver = KubernetesDriver::read("prod/statefulsets/workers", server).unwrap();
        let error = driver.scale(&wish(2, 5)).await.unwrap_err();
        assert!(error.contains("403") && error.contains("may not scale"), "{error}");
        let error = driver.scale(&wish(2, 5)).await.unwrap_err();
        assert!(error.contains("no number of replicas"), "{error}");
        assert_eq!(asked.await.unwrap().len(), 3);
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
