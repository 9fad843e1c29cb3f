//! `ikada program push|list|show|delete`.

use std::io::Read;

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::NewProgram;

use crate::args::{ProgramCommand, ProgramPushArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// First bytes of a binary WebAssembly module.
const MAGIC: &[u8] = b"\0asm";

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

/// Whether a file begins as every binary module does.
fn starts_as_module(file: &mut std::fs::File) -> std::io::Result<bool> {
    let mut first = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut first)?;
    Ok(first == MAGIC)
}

async fn push(client: &Client, args: ProgramPushArgs, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(name) = args.handler {
        let kind = "handler".to_owned();
        let program = NewProgram { name, kind, ..NewProgram::default() };
        return screen.show(&client.push_program(&program).await?);
    }
    let stem = args.file.as_ref().and_then(|file| file.file_stem());
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    let name = args.name.or(stem);
    let name = name.ok_or_else(|| Failure::usage("name the program: --name NAME"))?;
    let kind = if args.command.is_empty() { "wasm" } else { "command" };
    let file = match args.file {
        None => None,
        Some(path) => {
            // Looked at first, so that a wrong path is told as one.
            let file = std::fs::File::open(&path).and_then(|mut file| starts_as_module(&mut file));
            let module =
                file.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            if args.command.is_empty() && !module {
                let shown = path.display();
                return Err(Failure::usage(format!(
                    "{shown} is no WebAssembly module; say how it is run, as in: ikada program push {shown} -- python3 {{file}}"
                )));
            }
            Some(client.upload(&ObjectSource::File(path), &PutOptions::default()).await?)
        }
    };
    let program =
        NewProgram { name, kind: kind.to_owned(), argv: args.command, entry: args.entry, file };
    screen.show(&client.push_program(&program).await?)
}
