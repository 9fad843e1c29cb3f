//! What the help and the pages show is understood: every example of a help text is read as the program would read it, and
//! every command that a page names has its subcommands and flags.

use std::path::{Path, PathBuf};

use clap::{Command, FromArgMatches};

use super::help::as_flag;
use super::{Cli, command};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn program() -> Command {
    let mut program = command();
    program.build();
    program
}

/// The words of a command as a shell has them: up to a pipe, a redirection, or the remark that follows after two spaces.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            _ if quote == Some(one) => quote = None,
            _ if quote.is_some() => word.get_or_insert_default().push(one),
            '\'' | '"' => {
                word.get_or_insert_default();
                quote = Some(one);
            }
            '|' | '>' | '&' | ';' => break,
            '#' if word.is_none() => break,
            ' ' => {
                words.extend(word.take());
                if rest.peek() == Some(&' ') {
                    break;
                }
            }
            _ => word.get_or_insert_default().push(one),
        }
    }
    words.extend(word);
    words
}

/// Lines of a help text that are commands of this program.
fn examples(help: &str) -> Vec<&str> {
    let command = |line: &str| {
        let from = line.find("| ikada ").map(|place| place + 2);
        let from = from.or_else(|| line.starts_with("ikada ").then_some(0));
        from.or_else(|| line.starts_with("IKADA_").then(|| line.find("ikada "))?)
    };
    let indented = help.lines().filter(|line| line.starts_with("  ")).map(str::trim);
    indented.filter_map(|line| line.get(command(line)?..)).collect()
}

#[test]
fn every_example_in_the_help_is_a_command_that_is_understood() {
    let (mut waiting, mut count) = (vec![program()], 0);
    while let Some(command) = waiting.pop() {
        let help = command.get_after_help().into_iter().chain(command.get_after_long_help());
        let help: Vec<String> = help.map(ToString::to_string).collect();
        for example in help.iter().flat_map(|help| examples(help)) {
            let typed = as_flag(words(example).into_iter().map(Into::into).collect());
            let read = self::command().try_get_matches_from(typed);
            let read = read.and_then(|matches| Cli::from_arg_matches(&matches));
            let complaint = read.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(complaint.is_empty(), "{}: {example}\n{complaint}", command.get_name());
            count += 1;
        }
        waiting.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned());
    }
    assert!(count >= 180, "only {count} examples were found");
}

/// What is wrong with a command that words of ours name.
pub(crate) fn fault_of(line: &str) -> Option<String> {
    fault(&program(), line)
}

/// What is wrong with a command that a page names, which may be only its beginning.
fn fault(program: &Command, line: &str) -> Option<String> {
    let (mut command, mut words) = (program, words(line).into_iter().skip(1).peekable());
    while let Some(word) = words.peek() {
        if word.starts_with('-') || word.starts_with(['<', '[', '.', '…']) {
            break;
        }
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None if command.has_subcommands() => return Some(format!("there is no {word}")),
            None => break,
        }
        words.next();
    }
    // What stands in quotes is the value of a flag.
    let own = words.take_while(|word| word != "--").filter(|word| !word.contains(' '));
    let mut flags = own.filter_map(|word| word.strip_prefix("--").map(str::to_owned));
    let unknown = |flag: &String| {
        let name = flag.split(['=', ']', '/']).next().unwrap_or_default();
        let knows = |arg: &clap::Arg| arg.get_long() == Some(name);
        name != "help" && name != "version" && !command.get_arguments().any(knows)
    };
    flags.find(unknown).map(|flag| format!("there is no --{flag}"))
}

/// Commands that a page names in its text and in its blocks.
fn named(page: &str) -> Vec<String> {
    let (mut found, mut in_block) = (Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            // Long commands go on in the next line, and are read up to its end.
            found.push(line.trim().trim_end_matches('\\').trim_end().to_owned());
        } else {
            // Odd parts between backticks are code.
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.retain(|line| line.starts_with("ikada "));
    found
}

fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => pages(&path, into),
            path if path.extension().is_some_and(|end| end == "md") => into.push(path),
            _ => {}
        }
    }
}

#[test]
fn every_command_that_a_page_names_exists_with_its_flags() {
    let (program, mut all, mut count) = (program(), Vec::new(), 0);
    for folder in ["docs", "deploy", "examples", "sdk/python"] {
        pages(&root().join(folder), &mut all);
    }
    all.extend(["README.md", "ARCHITECTURE.md", "SECURITY.md"].map(|page| root().join(page)));
    let mut faults = Vec::new();
    for page in all {
        for line in named(&std::fs::read_to_string(&page).expect("a page")) {
            count += 1;
            let fault = fault(&program, &line);
            faults.extend(fault.map(|why| format!("{}: {line}: {why}", page.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 200, "only {count} commands were found");
}

/// Long flags of a command and of all below it.
fn flags(command: &Command, into: &mut Vec<String>) {
    into.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|sub| flags(sub, into));
}

#[test]
fn every_flag_that_a_runbook_names_exists() {
    let (mut known, mut count) = (Vec::new(), 0);
    flags(&program(), &mut known);
    let page = std::fs::read_to_string(root().join("docs/runbooks.md")).expect("a page");
    for code in page.split('`').skip(1).step_by(2) {
        for flag in code.split(' ').filter_map(|word| word.strip_prefix("--")) {
            let flag = flag.split(['=', ']', '/']).next().unwrap_or_default();
            assert!(known.iter().any(|one| one == flag), "{code}: there is no --{flag}");
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} flags were found");
}

#[test]
fn commands_are_cut_where_a_shell_and_a_remark_cut_them() {
    assert_eq!(words("ikada task show x   a remark"), ["ikada", "task", "show", "x"]);
    assert_eq!(words("ikada a --b '{\"c\": 1}' | jq ."), ["ikada", "a", "--b", "{\"c\": 1}"]);
    assert_eq!(words("ikada a \"\" > f"), ["ikada", "a", ""]);
    let program = program();
    assert_eq!(fault(&program, "ikada task"), None);
    assert_eq!(fault(&program, "ikada program push x -- convert --resize"), None);
    for wrong in ["ikada tsk list", "ikada task lst", "ikada task list --stat dead"] {
        assert!(fault(&program, wrong).is_some(), "{wrong}");
    }
}
