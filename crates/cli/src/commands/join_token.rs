//! `ikada join-token create|list|revoke`. Works on files; a running server sees the change at once.

use std::path::Path;

use ikada_node::tls::{Authority, JoinRole, JoinTokens, Papers, TlsError};

use crate::args::JoinTokenCommand;
use crate::failure::Failure;
use crate::render::{JoinTokenPage, Screen};

const HOUR_MS: u64 = 60 * 60 * 1000;

pub(crate) fn join_token(command: JoinTokenCommand, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        JoinTokenCommand::List(args) => {
            let (_, tokens) = open(&args.data)?;
            screen.show(&JoinTokenPage { tokens: tokens.list().to_vec(), text: None })
        }
        JoinTokenCommand::Revoke(args) => {
            let (_, mut tokens) = open(&args.authority.data)?;
            if !tokens.revoke(&args.id).map_err(failed)? {
                let message = format!("there is no join token {:?}", args.id);
                return Err(Failure::Refused { message, next: None });
            }
            screen.show(&JoinTokenPage { tokens: tokens.list().to_vec(), text: None })
        }
        JoinTokenCommand::Create(args) => {
            let (papers, mut tokens) = open(&args.authority.data)?;
            let ttl_ms = Some(args.hours * HOUR_MS);
            let token = tokens
                .create(&papers.authority_pem, JoinRole::Node, args.uses, ttl_ms, args.node)
                .map_err(failed)?;
            eprintln!("keep this token now: it is shown this once, and stored nowhere");
            let made = tokens.list().iter().filter(|grant| grant.id == token.id);
            let text = Some(token.reveal().reveal().to_owned());
            screen.show(&JoinTokenPage { tokens: made.cloned().collect(), text })
        }
    }
}

fn open(data: &Path) -> Result<(Papers, JoinTokens), Failure> {
    let (papers, _) = open_authority(data)?;
    let tokens = JoinTokens::open(&papers.folder).map_err(failed)?;
    Ok((papers, tokens))
}

/// The papers of a data folder, and the authority, whose key must be there.
pub(super) fn open_authority(data: &Path) -> Result<(Papers, Authority), Failure> {
    let folder = Papers::folder(data);
    let papers = Papers::load(&folder).map_err(failed)?;
    let papers = papers.ok_or_else(|| {
        Failure::usage(format!("{} holds no certificate; name another --data", folder.display()))
    })?;
    let Some(authority) = papers.authority().map_err(failed)? else {
        let message = format!("the authority's key is not in {}", folder.display());
        return Err(Failure::usage(format!("{message}; run this where ca.key is")));
    };
    Ok((papers, authority))
}

// By value, as `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn failed(error: TlsError) -> Failure {
    Failure::failed(error.to_string())
}
