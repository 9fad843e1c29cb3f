//! `ikada context list|set|use|remove`. Talks to no cluster.

use crate::args::{ContextCommand, SharedArgs};
use crate::contexts::{Context, Contexts};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) fn context(
    shared: &SharedArgs,
    command: ContextCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut contexts = Contexts::load()?;
    match command {
        ContextCommand::List => return screen.show(&contexts),
        ContextCommand::Set(named) => {
            let context = Context {
                url: shared.url.clone(),
                token_file: absolute(shared.credentials.token_file.as_deref())?,
                ca_file: absolute(shared.credentials.ca_file.as_deref())?,
                cert_file: absolute(shared.credentials.cert_file.as_deref())?,
                key_file: absolute(shared.credentials.key_file.as_deref())?,
                namespace: shared.namespace.clone(),
            };
            if context.url.is_empty() {
                return Err(Failure::usage("name the cluster's nodes with --url"));
            }
            contexts.current.get_or_insert_with(|| named.name.clone());
            contexts.contexts.insert(named.name, context);
        }
        ContextCommand::Use(named) => {
            contexts.pick(Some(&named.name))?;
            contexts.current = Some(named.name);
        }
        ContextCommand::Remove(named) => {
            contexts.pick(Some(&named.name))?;
            contexts.contexts.remove(&named.name);
            contexts.current.take_if(|current| *current == named.name);
        }
    }
    contexts.store()?;
    screen.show(&contexts)
}

/// A path that means the same from any folder.
fn absolute(path: Option<&std::path::Path>) -> Result<Option<std::path::PathBuf>, Failure> {
    let absolute = path.map(std::path::absolute).transpose();
    absolute.map_err(|error| Failure::usage(format!("file name: {error}")))
}
