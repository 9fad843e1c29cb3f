//! `ikada auth token create|list|revoke`, the same for `cert` and `s3-key`, `ikada auth whoami`.

use ikada_api::v1::NewToken;

use crate::args::{AuthCommand, S3KeyCommand, SharedArgs, TokenCommand, TokenCreateArgs};
use crate::commands::cert::cert;
use crate::failure::Failure;
use crate::render::{S3Key, Screen};

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
            let made = client.create_token(&wish(args, false)).await?;
            eprintln!("keep this token now: it is shown this once, and stored nowhere");
            screen.show(&made)
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

fn wish(args: TokenCreateArgs, s3: bool) -> NewToken {
    let ttl_ms = Some(args.days * DAY_MS);
    let (name, role, namespaces) = (args.name, args.role, args.namespaces);
    NewToken { name, role, namespaces, ttl_ms, s3, certificate: None }
}
