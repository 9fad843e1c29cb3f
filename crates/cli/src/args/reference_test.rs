//! The pages about commands say what the commands are.
//!
//! `IKADA_WRITE_REFERENCE=1 cargo test -p ikada-cli reference` writes `docs/reference/cli.md` anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};

use super::command;

const HEAD: &str = "# All commands\n\nMade from the program itself; `ikada <command> --help` shows the same, fitted to the terminal. Flags of every command: `--url`, `--output`, `--namespace` and the others of `ikada --help`.\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn program() -> Command {
    let mut program = command();
    program.build();
    program
}

#[test]
fn the_page_of_all_commands_is_that_of_the_program() {
    let page = root().join("docs/reference/cli.md");
    let program = program();
    let mut made = HEAD.to_owned();
    made.push_str("\n```text\n");
    draw_tree(&mut made, &program, 0);
    made.push_str("```\n");
    describe(&mut made, &program, "ikada");
    if std::env::var_os("IKADA_WRITE_REFERENCE").is_some() {
        std::fs::write(&page, &made).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(kept == made, "IKADA_WRITE_REFERENCE=1 with this test writes the page anew");
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn draw_tree(out: &mut String, command: &Command, depth: usize) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let name = format!("{}{}", "  ".repeat(depth), command.get_name());
    let _ = writeln!(out, "{name:<28} {about}");
    for sub in shown(command) {
        draw_tree(out, sub, depth + 1);
    }
}

fn describe(out: &mut String, command: &Command, path: &str) {
    for sub in shown(command) {
        let path = format!("{path} {}", sub.get_name());
        if sub.has_subcommands() {
            describe(out, sub, &path);
            continue;
        }
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(out, "\n## {path}\n\n{about}\n\n");
        for argument in sub.get_arguments().filter(|arg| is_its_own(arg)) {
            describe_argument(out, argument);
        }
        if let Some(examples) = sub.get_after_help() {
            let _ = write!(out, "\n```text\n{examples}\n```\n");
        }
    }
}

/// Not one of the flags that every command has.
fn is_its_own(argument: &Arg) -> bool {
    !argument.is_global_set() && !argument.is_hide_set() && argument.get_id() != "help"
}

fn describe_argument(out: &mut String, argument: &Arg) {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let takes = argument.get_action().takes_values();
    let name = match (argument.get_long(), takes) {
        (Some(long), true) => format!("--{long} {}", values.join(" ")),
        (Some(long), false) => format!("--{long}"),
        (None, _) => values.join(" "),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let given: Vec<_> = argument.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let given = if given.is_empty() || !takes {
        String::new()
    } else {
        format!(" Default: `{}`.", given.join(" "))
    };
    let _ = writeln!(out, "- `{name}`: {help}{given}");
}

/// All pages but the one above.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("SECURITY.md")];
    let mut folders = vec![root().join("docs"), root().join("deploy"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|end| end == "md") => found.push(path),
                _ => {}
            }
        }
    }
    found
}

/// What stands between backticks and begins with the program's name.
fn inline_commands(text: &str) -> Vec<&str> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if !in_block {
            let codes = line.split('`').skip(1).step_by(2);
            found.extend(codes.filter(|code| code.starts_with("ikada ")));
        }
    }
    found
}

/// The first word that the program does not know: a command, or a flag of it.
fn unknown_word<'a>(program: &Command, line: &'a str) -> Option<&'a str> {
    let mut command = program;
    let words = line.split_whitespace().skip(1);
    // What stands behind -- or a pipe is another program's.
    for word in words.take_while(|word| !["--", "|", "&&", ">"].contains(word)) {
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split(['=', '|']).next().unwrap_or_default();
            let flag = flag.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let known = command.get_arguments().chain(program.get_arguments());
            let mut known = known.filter_map(Arg::get_long);
            if !flag.is_empty() && flag != "help" && flag != "version" && !known.any(|k| k == flag)
            {
                return Some(word);
            }
        } else if command.has_subcommands() {
            match word.split('|').next().and_then(|name| command.find_subcommand(name)) {
                Some(sub) => command = sub,
                None if word.starts_with(['<', '.', '-']) => return None,
                None => return Some(word),
            }
        }
    }
    None
}

#[test]
fn commands_within_sentences_exist() {
    let program = program();
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for line in inline_commands(&text) {
            count += 1;
            if let Some(word) = unknown_word(&program, line) {
                wrong.push(format!("{}: `{line}`: {word}", page.display()));
            }
        }
    }
    assert!(count > 80, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(unknown_word(&program, "ikada tusk list"), Some("tusk"));
    assert_eq!(unknown_word(&program, "ikada task list --kueue a"), Some("--kueue"));
    assert_eq!(unknown_word(&program, "ikada task enqueue --queue a --id b"), None);
}
