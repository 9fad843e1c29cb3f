//! How an object store is reached: the variables that its other programs read, and none of our own.
//!
//! Secrets come from the environment alone, never from arguments, which every user of a machine can see.

use std::net::IpAddr;

use super::place::Door;
use super::sign::Credentials;
use crate::client::BaseUrl;

const REGION_DEFAULT: &str = "us-east-1";
const GOOGLE_ENDPOINT: &str = "https://storage.googleapis.com";

/// Where a store is, and with which key it is asked.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Its address.
    pub endpoint: BaseUrl,
    /// The region that signatures name.
    pub region: String,
    /// The key.
    pub credentials: Credentials,
    /// A file with authorities to trust instead of the system's.
    pub authorities_file: Option<String>,
}

/// Settings that are missing or cannot be used, all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BadSettings(pub(super) Vec<String>);

impl StoreSettings {
    /// Reads the variables by a function that knows them.
    pub fn read(
        door: Door,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<StoreSettings, BadSettings> {
        let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut wrong = Vec::new();
        let mut needed = |name: &str| {
            let value = given(name);
            if value.is_none() {
                wrong.push(format!("{name} is not set: the store asks for a key"));
            }
            value.unwrap_or_default().trim().to_owned()
        };
        let credentials = Credentials {
            key_id: needed("AWS_ACCESS_KEY_ID"),
            secret: needed("AWS_SECRET_ACCESS_KEY"),
            session_token: given("AWS_SESSION_TOKEN").map(|token| token.trim().to_owned()),
        };
        let region = given("AWS_REGION").or_else(|| given("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| match door {
            Door::Amazon => REGION_DEFAULT.to_owned(),
            Door::Google => "auto".to_owned(),
        });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !region.bytes().all(plain) {
            wrong.push(format!("AWS_REGION: {region:?} is no region"));
        }
        let endpoint = given("AWS_ENDPOINT_URL_S3").or_else(|| given("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.unwrap_or_else(|| match door {
            Door::Amazon => format!("https://s3.{region}.amazonaws.com"),
            Door::Google => GOOGLE_ENDPOINT.to_owned(),
        });
        // A bare host would silently mean http.
        let endpoint = match endpoint.contains("://") {
            true => endpoint,
            false => format!("https://{endpoint}"),
        };
        match (BaseUrl::parse(endpoint.trim()), wrong.is_empty()) {
            (Ok(endpoint), true) => {
                let authorities_file = given("AWS_CA_BUNDLE");
                Ok(StoreSettings { endpoint, region, credentials, authorities_file })
            }
            (Ok(_), false) => Err(BadSettings(wrong)),
            (Err(error), _) => {
                wrong.push(format!("AWS_ENDPOINT_URL: {error}"));
                Err(BadSettings(wrong))
            }
        }
    }

    /// Whether bytes travel in the open over a network: `http` to another machine.
    pub fn is_in_the_open(&self) -> bool {
        let address = self.endpoint.authority();
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost"
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        !self.endpoint.is_secure() && !is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(door: Door, given: &[(&str, &str)]) -> Result<StoreSettings, BadSettings> {
        StoreSettings::read(door, |name| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];

    #[test]
    fn the_usual_variables_count() {
        let plain = read(Door::Amazon, &KEY).unwrap();
        assert_eq!(plain.endpoint.as_str(), "https://s3.us-east-1.amazonaws.com");
        let google = read(Door::Google, &KEY).unwrap();
        assert_eq!(google.endpoint.as_str(), "https://storage.googleapis.com");
        assert_eq!(google.region, "auto");
        let more = [
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            ("AWS_SESSION_TOKEN", "t"),
        ];
        let named = read(Door::Amazon, &[&KEY[..], &more].concat()).unwrap();
        assert_eq!(
            (named.endpoint.as_str(), named.region.as_str()),
            ("http://127.0.0.1:1", "eu-central-1")
        );
        assert_eq!(named.credentials.session_token.as_deref(), Some("t"));
    }

    #[test]
    fn all_that_is_wrong_is_told_together() {
        let wrong = [("AWS_REGION", "a b"), ("AWS_ENDPOINT_URL", "ftp://a")];
        let told = read(Door::Amazon, &wrong).unwrap_err().to_string();
        for word in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"]
        {
            assert!(told.contains(word), "{told}");
        }
        assert!(read(Door::Amazon, &[("AWS_ACCESS_KEY_ID", " "), KEY[1]]).is_err());
    }

    #[test]
    fn only_http_to_other_machines_is_in_the_open() {
        let at = |url: &str| {
            let more = [("AWS_ENDPOINT_URL", url)];
            read(Door::Amazon, &[&KEY[..], &more].concat()).unwrap().is_in_the_open()
        };
        for safe in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost", "https://a", "a"] {
            assert!(!at(safe), "{safe}");
        }
        for open in ["http://a", "http://10.0.0.1:9000", "http://localhost.example"] {
            assert!(at(open), "{open}");
        }
    }
}
