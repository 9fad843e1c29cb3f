//! `ikada program push|list|show|delete`.

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::NewProgram;

use crate::args::{ProgramCommand, ProgramPushArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn program(
    shared: &SharedArgs,
    command: ProgramCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        ProgramCommand::Push(args) => push(&client, args, screen).await,
        ProgramCommand::List => screen.show(&client.programs().await?),
        ProgramCommand::Show(args) => screen.show(&client.program(&args.name).await?),
        ProgramCommand::Delete(args) => screen.show(&client.delete_program(&args.name).await?),
    }
}

async fn push(client: &Client, args: ProgramPushArgs, screen: &mut Screen) -> Result<(), Failure> {
    let stem = args.file.as_ref().and_then(|file| file.file_stem());
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    let name = args.name.or(stem);
    let name = name.ok_or_else(|| Failure::usage("name the program: --name NAME"))?;
    let file = match args.file {
        None => None,
        Some(path) => {
            // Looked at first, so that a wrong path is told as one.
            std::fs::metadata(&path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            Some(client.upload(&ObjectSource::File(path), &PutOptions::default()).await?)
        }
    };
    let program = NewProgram { name, kind: "command".to_owned(), argv: args.command, file };
    screen.show(&client.push_program(&program).await?)
}
