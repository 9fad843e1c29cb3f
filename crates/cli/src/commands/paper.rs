//! `ikada completions` and `ikada man`: what shells and `man` know about the commands, from the same definitions as the help.

use std::path::Path;

use crate::args::{CompletionsArgs, ManArgs, command};
use crate::failure::Failure;
use crate::render::write;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "ikada", &mut script);
    write(&String::from_utf8_lossy(&script))
}

/// One page per command, named as `man` wants it: `ikada-task-enqueue.1`.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(&args.folder).map_err(|error| failed(&args.folder, error))?;
    let mut command = command();
    command.build();
    let mut pages = Vec::new();
    collect(&command, "ikada", &mut pages)
        .map_err(|error| Failure::failed(format!("a page could not be written: {error}")))?;
    for (name, page) in &pages {
        let path = args.folder.join(format!("{name}.1"));
        std::fs::write(&path, page).map_err(|error| failed(&path, error))?;
    }
    eprintln!("{} pages are in {}", pages.len(), args.folder.display());
    Ok(())
}

fn collect(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    // The help commands that clap adds have no life of their own.
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        collect(inner, &format!("{name}-{}", inner.get_name()), pages)?;
    }
    let mut page = Vec::new();
    let source = concat!("Ikada ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone()).source(source).manual("Ikada").render(&mut page)?;
    pages.push((name.to_owned(), page));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_a_script() {
        let folder = tempfile::tempdir().unwrap();
        man(&ManArgs { folder: folder.path().join("man1") }).unwrap();
        let page = |name: &str| {
            let path = folder.path().join("man1").join(name);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        assert!(page("ikada.1").contains("ikada\\-task(1)"), "{}", page("ikada.1"));
        assert!(page("ikada-task-enqueue.1").contains("payload"));
        assert!(page("ikada-doctor.1").contains("sync") || page("ikada-doctor.1").contains("disk"));
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command(), "ikada", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("enqueue"), "{shell}");
        }
    }
}
