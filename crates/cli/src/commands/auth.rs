//! `ikada auth token create|list|revoke`, the same for `cert` and `s3-key`, `ikada auth whoami`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use ikada_api::Client;
use ikada_api::v1::NewToken;

use crate::args::{
    AuthCommand, S3KeyCommand, SharedArgs, TokenCommand, TokenCreateArgs, TokenOutArgs,
};
use crate::commands::cert::cert;
use crate::failure::Failure;
use crate::render::{S3Key, Screen, StoredToken};

/// How the names of S3 keys begin.
const S3_NAME: &str = "s3-";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) async fn auth(
    shared: &SharedArgs,
    command: AuthCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        AuthCommand::Whoami => screen.show(&client.whoami().await?),
        AuthCommand::Token(TokenCommand::List) => screen.show(&client.tokens().await?),
        AuthCommand::Token(TokenCommand::Revoke(token)) => {
            screen.show(&client.revoke_token(&token.id).await?)
        }
        AuthCommand::Token(TokenCommand::Create(args)) => {
            let TokenOutArgs { token, out } = args;
            match out {
                Some(path) => screen.show(&create_into(&client, &wish(token, false), path).await?),
                None => {
                    let made = client.create_token(&wish(token, false)).await?;
                    eprintln!("keep this token now: it is shown this once, and stored nowhere");
                    screen.show(&made)
                }
            }
        }
        AuthCommand::Cert(command) => cert(&client, command, screen).await,
        AuthCommand::S3Key(S3KeyCommand::List) => {
            let mut page = client.tokens().await?;
            page.tokens.retain(|token| token.name.starts_with(S3_NAME));
            screen.show(&page)
        }
        AuthCommand::S3Key(S3KeyCommand::Revoke(key)) => {
            screen.show(&client.revoke_token(&key.id).await?)
        }
        AuthCommand::S3Key(S3KeyCommand::Create(args)) => {
            let made = client.create_token(&wish(args, true)).await?;
            eprintln!("keep the secret key now: it is shown this once");
            screen.show(&S3Key { access_key: made.id, secret_key: made.token })
        }
    }
}

/// Makes a token and keeps it in a new file. The file is made before the token: one that has no place would be lost.
async fn create_into(
    client: &Client,
    wish: &NewToken,
    path: PathBuf,
) -> Result<StoredToken, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    let made = match client.create_token(wish).await {
        Ok(made) => made,
        Err(error) => {
            // Nothing was written to it.
            let _ = std::fs::remove_file(&path);
            return Err(error.into());
        }
    };
    let written = writeln!(file, "{}", made.token).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let revoke = format!("ikada auth token revoke {}", made.id);
        let message = format!("{}: {error}; end the token: {revoke}", path.display());
        return Err(Failure::failed(message));
    }
    Ok(StoredToken { id: made.id, file: path.display().to_string() })
}

fn wish(args: TokenCreateArgs, s3: bool) -> NewToken {
    let ttl_ms = Some(args.days * DAY_MS);
    let (name, role, namespaces) = (args.name, args.role, args.namespaces);
    NewToken { name, role, namespaces, ttl_ms, s3, certificate: None }
}
