//! Clusters that are known by a name: `~/.config/ikada/contexts.toml`.
//!
//! Promise: the file holds addresses and names of files, never a secret. It is replaced as a whole.
//!
//! Leaves out: which of flag, environment and context counts (`args`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Where to find one cluster, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Context {
    /// Nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) url: Vec<String>,
    /// File with the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the authority of its certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// File with a client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert_file: Option<PathBuf>,
    /// File with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_file: Option<PathBuf>,
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contexts {
    /// The one in use unless another is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// By name.
    pub(crate) contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// Where the file is; none without a home.
    pub(crate) fn path() -> Option<PathBuf> {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.filter(|path| path.is_absolute());
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
        Some(config.or_else(home)?.join("ikada").join("contexts.toml"))
    }

    /// Reads the file; none is no contexts.
    pub(crate) fn load() -> Result<Contexts, Failure> {
        match Contexts::path() {
            Some(path) => Contexts::load_from(&path),
            None => Ok(Contexts::default()),
        }
    }

    fn load_from(path: &Path) -> Result<Contexts, Failure> {
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contexts::default()),
            Err(error) => Err(Failure::failed(format!("{}: {error}", path.display()))),
        }
    }

    /// Replaces the file.
    pub(crate) fn store(&self) -> Result<(), Failure> {
        let path = Contexts::path()
            .ok_or_else(|| Failure::failed("there is no home folder to keep contexts in"))?;
        self.store_to(&path)
    }

    fn store_to(&self, path: &Path) -> Result<(), Failure> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let text =
            toml::to_string(self).map_err(|error| Failure::failed(format!("contexts: {error}")))?;
        let fresh = path.with_extension("toml.new");
        std::fs::write(&fresh, text).map_err(failed)?;
        std::fs::rename(&fresh, path).map_err(failed)
    }

    /// The context that is named, else the current one, else none.
    pub(crate) fn pick(&self, named: Option<&str>) -> Result<Option<&Context>, Failure> {
        let Some(name) = named.or(self.current.as_deref()) else {
            return Ok(None);
        };
        self.contexts.get(name).map(Some).ok_or_else(|| {
            Failure::usage(format!("there is no context {name:?}; see `ikada context list`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_and_picked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/contexts.toml");
        let mut contexts = Contexts::load_from(&path).unwrap();
        assert_eq!(contexts.pick(None).unwrap(), None);
        let url = vec!["https://a:1".to_owned()];
        let prod = Context { url, token_file: Some("t".into()), ..Context::default() };
        contexts.contexts.insert("prod".into(), prod.clone());
        contexts.current = Some("prod".into());
        contexts.store_to(&path).unwrap();
        let again = Contexts::load_from(&path).unwrap();
        assert_eq!(again, contexts);
        assert_eq!(again.pick(None).unwrap(), Some(&prod));
        assert!(matches!(again.pick(Some("x")), Err(Failure::Usage { .. })));
        std::fs::write(&path, "[contexts.prod]\ntoken = \"secret\"").unwrap();
        assert!(Contexts::load_from(&path).is_err(), "a token does not belong there");
    }
}
