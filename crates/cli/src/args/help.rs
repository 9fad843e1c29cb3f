//! How help looks: short, with the commands by what they are for.
//!
//! Promises: `--help`, `-h` and `help` show the same; an option takes a line or two, so that examples are in sight; what is set in the
//! environment is not printed, only where it would be read from. Leaves out: what the commands are.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Cli;

/// What commands are for, in the order in which one meets them.
const KINDS: [(&str, &[&str]); 5] = [
    ("Begin", &["demo", "dev"]),
    ("Work", &["job", "task", "queue", "schedule", "program", "object", "lease", "request"]),
    ("Run it", &["server", "worker", "cluster", "worker-pool", "doctor", "verify", "bench"]),
    ("Access", &["auth", "join-token", "namespace", "audit", "context"]),
    ("This program", &["completions", "man", "help"]),
];

/// The whole command line, as it is read and shown.
pub(crate) fn command() -> Command {
    let command = dress(Cli::command());
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}\n\n{{after-help}}",
        by_kind(&command)
    );
    command.help_template(template)
}

fn dress(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    command
        .disable_help_flag(true)
        .arg(help.help("Print help"))
        .mut_args(|arg| arg.hide_env_values(true))
        .mut_subcommands(dress)
}

/// The commands of the program, a part for each kind.
fn by_kind(command: &Command) -> String {
    let widest = command.get_subcommands().map(|sub| sub.get_name().len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let about = match command.find_subcommand(name).and_then(Command::get_about) {
            Some(about) => about.to_string(),
            None => "Print the help of a command".to_owned(),
        };
        format!("  {name:widest$}  {about}\n")
    };
    let part = |(kind, names): &(&str, &[&str])| {
        format!("{kind}:\n{}\n", names.iter().map(line).collect::<String>())
    };
    KINDS.iter().map(part).collect()
}

/// `help task list` and `task help list` as `task list --help`.
pub(super) fn as_flag(mut words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut group = Cli::command();
    for place in 1..words.len() {
        // Behind a command that is no group it is a name like any other.
        if !group.has_subcommands() {
            break;
        }
        if words[place] == "help" {
            words.remove(place);
            words.push("--help".into());
            break;
        }
        match group.find_subcommand(&words[place]).cloned() {
            Some(inner) => group = inner,
            None => break,
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_place_in_the_help() {
        let mut known: Vec<String> =
            Cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        known.push("help".to_owned());
        let mut placed: Vec<&str> =
            KINDS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        placed.sort_unstable();
        assert_eq!(known, placed);
    }

    #[test]
    fn help_fits_eighty_columns_and_says_nothing_of_this_machine() {
        let mut waiting = vec![command().term_width(80)];
        while let Some(mut shown) = waiting.pop() {
            let help = shown.render_help().to_string();
            assert!(!help.contains("[env: IKADA_URL="), "{help}");
            assert!(help.contains("[env: IKADA_URL]") || shown.get_name() != "ikada", "{help}");
            // Examples are commands as one types them, and stay whole.
            let options = help.split("Examples:").next().unwrap_or_default();
            let long: Vec<&str> =
                options.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{}: {long:?}", shown.get_name());
            waiting.extend(shown.get_subcommands().map(|sub| sub.clone().term_width(80)));
        }
    }

    #[test]
    fn help_as_a_word_is_help_as_a_flag() {
        let words = |line: &str| line.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
        for line in ["ikada help task list", "ikada task help list"] {
            assert_eq!(as_flag(words(line)), words("ikada task list --help"), "{line}");
        }
        assert_eq!(as_flag(words("ikada task help")), words("ikada task --help"));
        for line in ["ikada", "ikada task list", "ikada task show help", "ikada help-me help"] {
            assert_eq!(as_flag(words(line)), words(line), "{line}");
        }
    }
}
