//! The first admin token: made once per cluster, written once to a file that only its owner can read (X19).
//!
//! The file is durable before the token is proposed, so that a crash in between leaves a token that is proposed again,
//! never one that nobody knows. Only the member with the lowest id does this; the others need no token of their own.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use ikada_api::state::{
    AddToken, Command, Namespace, Order, PrincipalName, RefusalCode, Reply, Role,
};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};
use tracing::{info, warn};

use super::secret::digest;
use super::{Secret, TokenText};
use crate::http::Door;

/// Where the first token is written, in the data folder.
pub const FIRST_TOKEN_FILE: &str = "admin-token";
/// Whom it stands for.
const FIRST_NAME: &str = "first-admin";
/// How long one try may take, and the pause after a failed one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes the first token unless there is one. Goes on until the cluster has decided.
pub async fn make_first_token<D: Door>(door: D, folder: std::path::PathBuf) {
    let path = folder.join(FIRST_TOKEN_FILE);
    loop {
        match try_once(&door, &path).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                warn!(%error, path = %path.display(), "the first admin token cannot be written")
            }
        }
        tokio::time::sleep(PATIENCE / 4).await;
    }
}

/// True when there is nothing left to do.
async fn try_once<D: Door>(door: &D, path: &Path) -> io::Result<bool> {
    let read = Request::Read(Query::Tokens, Consistency::Linearizable);
    match door.call(read, PATIENCE, Routing::Forward).await {
        Answer::View { view: View::Tokens(tokens), .. } if tokens.is_empty() => {}
        Answer::View { view: View::Tokens(_), .. } => return Ok(true),
        _ => return Ok(false),
    }
    let token = match std::fs::read_to_string(path) {
        Ok(text) => TokenText::parse(text.trim()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the file holds no token; remove it")
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = TokenText::draw()?;
            write_private(path, &token.reveal())?;
            token
        }
        Err(error) => return Err(error),
    };
    let Ok(name) = PrincipalName::parse(FIRST_NAME) else { return Ok(true) };
    let add = AddToken {
        id: token.id.clone(),
        name,
        digest: digest(&token.secret),
        role: Role::Admin,
        namespaces: Vec::new(),
        ttl_ms: 0,
        first: true,
    };
    let order =
        Order { namespace: Namespace::default(), request: None, command: Command::AddToken(add) };
    match door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await {
        Answer::Written(outcomes) => match outcomes.first() {
            Some(Outcome::Reply { reply: Reply::TokenAdded { .. }, .. }) => {
                info!(path = %path.display(), "the first admin token is in this file; move it to a safe place");
                Ok(true)
            }
            Some(Outcome::Reply {
                reply: Reply::Refused { code: RefusalCode::TokensExist },
                ..
            }) => {
                // Somebody else was first: this one was never good for anything.
                std::fs::remove_file(path)?;
                Ok(true)
            }
            _ => Ok(false),
        },
        _ => Ok(false),
    }
}

/// Writes a new file that only its owner can read, durably. It has its name once it is whole: whoever waits for it, a node that
/// was killed meanwhile included, never finds half of it.
fn write_private(path: &Path, secret: &Secret) -> io::Result<()> {
    let partial = path.with_extension("part");
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(secret.reveal().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    // A link, since a move would put itself in the place of a file that is there.
    std::fs::hard_link(&partial, path)?;
    std::fs::remove_file(&partial)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
