//! How an object store is reached: the variables that its other programs read, and none of our own.
//!
//! Secrets come from the environment alone, never from arguments, which every user of a machine can see.

use std::net::IpAddr;

use super::place::Door;
use super::sign::Credentials;
use crate::azure::{Account, read_account};
use crate::client::BaseUrl;

const REGION_DEFAULT: &str = "us-east-1";
const GOOGLE_ENDPOINT: &str = "https://storage.googleapis.com";
/// Where accounts of Azure have their stores.
const AZURE_HOST: &str = "blob.core.windows.net";

/// Where a store is, and with which key it is asked.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Its address.
    pub endpoint: BaseUrl,
    /// What stands before the bucket in every path: empty, or `/account` where a host serves several accounts.
    pub path: String,
    /// By what right it is asked, and in which protocol.
    pub right: StoreRight,
    /// A file with authorities to trust instead of the system's.
    pub authorities_file: Option<String>,
}

/// By what right a store is asked.
#[derive(Debug, Clone)]
pub enum StoreRight {
    /// A key of S3 or of a store that speaks it.
    Amazon {
        /// The region that signatures name.
        region: String,
        /// The key.
        credentials: Credentials,
    },
    /// An account of Azure's.
    Azure(Account),
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
        match door {
            Door::Amazon | Door::Google => StoreSettings::read_amazon(door, given),
            Door::Azure => StoreSettings::read_azure(given),
        }
    }

    fn read_amazon(
        door: Door,
        given: impl Fn(&str) -> Option<String>,
    ) -> Result<StoreSettings, BadSettings> {
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
            Door::Google => "auto".to_owned(),
            _ => REGION_DEFAULT.to_owned(),
        });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !region.bytes().all(plain) {
            wrong.push(format!("AWS_REGION: {region:?} is no region"));
        }
        let endpoint = given("AWS_ENDPOINT_URL_S3").or_else(|| given("AWS_ENDPOINT_URL"));
        let endpoint = endpoint.unwrap_or_else(|| match door {
            Door::Google => GOOGLE_ENDPOINT.to_owned(),
            _ => format!("https://s3.{region}.amazonaws.com"),
        });
        let endpoint = read_endpoint("AWS_ENDPOINT_URL", &endpoint, &mut wrong);
        let authorities_file = given("AWS_CA_BUNDLE");
        let right = StoreRight::Amazon { region, credentials };
        match endpoint.filter(|_| wrong.is_empty()) {
            Some(endpoint) => {
                Ok(StoreSettings { endpoint, path: String::new(), right, authorities_file })
            }
            None => Err(BadSettings(wrong)),
        }
    }

    /// An emulator's address ends with the account, which then stands in every path.
    fn read_azure(given: impl Fn(&str) -> Option<String>) -> Result<StoreSettings, BadSettings> {
        let mut wrong = Vec::new();
        let account = read_account(&given, &mut wrong);
        let named = given("AZURE_STORAGE_ENDPOINT").map(|named| named.trim().to_owned());
        let (Some(account), true) = (account, wrong.is_empty()) else {
            return Err(BadSettings(wrong));
        };
        let whole = named.unwrap_or_else(|| format!("https://{}.{AZURE_HOST}", account.name()));
        let whole = whole.trim_end_matches('/');
        let host_at = whole.find("://").map_or(0, |at| at + 3);
        let path_at = whole[host_at..].find('/').map_or(whole.len(), |at| host_at + at);
        let (endpoint, path) = whole.split_at(path_at);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        if !path.bytes().all(plain) {
            wrong.push("AZURE_STORAGE_ENDPOINT: its path may only be the account".to_owned());
        }
        let endpoint = read_endpoint("AZURE_STORAGE_ENDPOINT", endpoint, &mut wrong);
        let (path, right) = (path.to_owned(), StoreRight::Azure(account));
        match endpoint.filter(|_| wrong.is_empty()) {
            Some(endpoint) => Ok(StoreSettings { endpoint, path, right, authorities_file: None }),
            None => Err(BadSettings(wrong)),
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

/// An address that a variable gives. A bare host would silently mean http.
fn read_endpoint(variable: &str, text: &str, wrong: &mut Vec<String>) -> Option<BaseUrl> {
    let text = text.trim();
    let parsed = match text.contains("://") {
        true => BaseUrl::parse(text),
        false => BaseUrl::parse(&format!("https://{text}")),
    };
    parsed.map_err(|error| wrong.push(format!("{variable}: {error}"))).ok()
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

    fn key_of(settings: &StoreSettings) -> (&str, &Credentials) {
        match &settings.right {
            StoreRight::Amazon { region, credentials } => (region, credentials),
            StoreRight::Azure(account) => panic!("{account:?}"),
        }
    }

    const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];

    #[test]
    fn the_usual_variables_count() {
        let plain = read(Door::Amazon, &KEY).unwrap();
        assert_eq!(plain.endpoint.as_str(), "https://s3.us-east-1.amazonaws.com");
        let google = read(Door::Google, &KEY).unwrap();
        assert_eq!(google.endpoint.as_str(), "https://storage.googleapis.com");
        assert_eq!(key_of(&google).0, "auto");
        let more = [
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
            ("AWS_SESSION_TOKEN", "t"),
        ];
        let named = read(Door::Amazon, &[&KEY[..], &more].concat()).unwrap();
        let (region, credentials) = key_of(&named);
        assert_eq!((named.endpoint.as_str(), region), ("http://127.0.0.1:1", "eu-central-1"));
        assert_eq!(credentials.session_token.as_deref(), Some("t"));
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

    const ACCOUNT: [(&str, &str); 2] =
        [("AZURE_STORAGE_ACCOUNT", "acc1"), ("AZURE_STORAGE_KEY", "c2VjcmV0LWtleQ==")];

    #[test]
    fn b4_35_an_account_has_its_own_address_or_stands_in_the_path_of_an_emulator() {
        let plain = read(Door::Azure, &ACCOUNT).unwrap();
        assert_eq!(plain.endpoint.as_str(), "https://acc1.blob.core.windows.net");
        assert_eq!(plain.path, "");
        let more = [("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:10000/acc1/")];
        let emulated = read(Door::Azure, &[&ACCOUNT[..], &more].concat()).unwrap();
        assert_eq!(
            (emulated.endpoint.as_str(), emulated.path.as_str()),
            ("http://127.0.0.1:10000", "/acc1")
        );
        for bad in ["ftp://a", "http://user@a", "http://a/b?c"] {
            let more = [("AZURE_STORAGE_ENDPOINT", bad)];
            assert!(read(Door::Azure, &[&ACCOUNT[..], &more].concat()).is_err(), "{bad}");
        }
    }

    #[test]
    fn x_13_an_account_needs_a_key_or_a_token_and_shows_neither() {
        let told = read(Door::Azure, &[]).unwrap_err().to_string();
        for word in ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"] {
            assert!(told.contains(word), "{told}");
        }
        for (name, value) in [
            ("AZURE_STORAGE_KEY", "canary!"),
            ("AZURE_STORAGE_SAS_TOKEN", "canary x"),
            ("AZURE_STORAGE_ACCOUNT", "a.evil.example/"),
        ] {
            let told = read(Door::Azure, &[(name, value)]).unwrap_err().to_string();
            assert!(told.contains(name) && !told.contains("canary"), "{told}");
        }
        let token = [ACCOUNT[0], ("AZURE_STORAGE_SAS_TOKEN", "?sv=2021-08-06&sig=canary%3D")];
        let settings = read(Door::Azure, &token).unwrap();
        assert!(!format!("{settings:?}").contains("canary"));
        let StoreRight::Azure(account) = &settings.right else { panic!("{settings:?}") };
        assert_eq!(account.parameters(), Some("sv=2021-08-06&sig=canary%3D"));
        assert!(!format!("{:?}", read(Door::Azure, &ACCOUNT)).contains("secret"));
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
