//! Reads the command line of this process, or ends it with the error and a next step.

use std::ffi::OsString;
use std::process::exit;

use clap::FromArgMatches;

use super::help::as_flag;
use super::{Cli, command};

/// Words that people type for commands with another name, and the command that they mean.
const MEANT: &[(&[&str], &str)] = &[
    (&["worker", "list"], "ikada worker-pool list"),
    (&["worker", "drain"], "ikada worker-pool drain"),
    (&["worker", "remove"], "ikada worker-pool remove"),
    (&["workers"], "ikada worker-pool list"),
    (&["jobs"], "ikada job list"),
    (&["tasks"], "ikada task list"),
    (&["queues"], "ikada queue list"),
    (&["status"], "ikada cluster status"),
    (&["events"], "ikada cluster events"),
];

/// The command line; an error ends the process.
pub(crate) fn read() -> Cli {
    let read = || {
        Cli::from_arg_matches(
            &command().try_get_matches_from(as_flag(std::env::args_os().collect()))?,
        )
    };
    read().unwrap_or_else(|error| {
        // Nobody is there to be told if this cannot be printed.
        let _ = error.print();
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        if let Some(meant) = meant(&words).filter(|_| error.use_stderr()) {
            eprintln!("\nYou may want: {meant}");
        }
        exit(error.exit_code())
    })
}

/// Which command was meant by these words, if we know.
fn meant(words: &[OsString]) -> Option<&'static str> {
    let begins = |wanted: &[&str]| {
        words.len() >= wanted.len() && wanted.iter().zip(words).all(|(one, other)| other == *one)
    };
    MEANT.iter().find(|(wanted, _)| begins(wanted)).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn meant_by(line: &str) -> Option<&'static str> {
        meant(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_people_type_first_leads_to_the_command() {
        assert_eq!(meant_by("worker list --output json"), Some("ikada worker-pool list"));
        assert_eq!(meant_by("status"), Some("ikada cluster status"));
        assert_eq!(meant_by("worker --slots"), None);
        for (words, meant) in MEANT {
            let typed = [&["ikada"], *words].concat();
            assert!(Cli::try_parse_from(typed).is_err(), "{words:?} is a command by now");
            let mut real: Vec<&str> = meant.split(' ').collect();
            if matches!(real.last(), Some(&"drain" | &"remove")) {
                real.push("name");
            }
            assert!(Cli::try_parse_from(real).is_ok(), "{meant} is no command");
        }
    }
}
