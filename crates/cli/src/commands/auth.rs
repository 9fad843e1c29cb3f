//! `ikada auth token create|list|revoke`, `ikada auth whoami`.

use ikada_api::v1::NewToken;

use crate::args::{AuthCommand, SharedArgs, TokenCommand};
use crate::failure::Failure;
use crate::render::Screen;

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
            let wanted = NewToken {
                name: args.name,
                role: args.role,
                namespaces: args.namespaces,
                ttl_ms: Some(args.days * DAY_MS),
            };
            let made = client.create_token(&wanted).await?;
            eprintln!("keep this token now: it is shown this once, and stored nowhere");
            screen.show(&made)
        }
    }
}
