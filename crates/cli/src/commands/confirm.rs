//! Asks before something goes that does not come back.
//!
//! Promise: only a person at a terminal is asked. Scripts, whose input is no terminal, go on as they always did; `--yes` says so in both.

use std::io::{BufRead, IsTerminal, Write};

use crate::failure::Failure;

/// Whether somebody sits there who can be asked, and has not answered beforehand.
pub(super) fn is_asked(yes: bool) -> bool {
    !yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks on the terminal; anything but a yes is a no.
pub(super) fn ask(question: &str) -> Result<(), Failure> {
    let mut err = std::io::stderr();
    let _ = write!(err, "{} [y/N] ", crate::render::plain(question)).and_then(|()| err.flush());
    match is_yes(std::io::stdin().lock())? {
        true => Ok(()),
        false => Err(Failure::failed("nothing was done")),
    }
}

/// Asks if somebody is there to answer.
pub(super) fn confirm(yes: bool, question: &str) -> Result<(), Failure> {
    if is_asked(yes) { ask(question) } else { Ok(()) }
}

fn is_yes(mut input: impl BufRead) -> Result<bool, Failure> {
    let mut line = String::new();
    let read = input.read_line(&mut line);
    read.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes" | "Yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (typed, wanted) in [("y\n", true), ("yes\r\n", true), ("Y", true), ("Yes\n", true)] {
            assert_eq!(is_yes(typed.as_bytes()).ok(), Some(wanted), "{typed:?}");
        }
        for typed in ["\n", "", "n\n", "no\n", "yess\n", "ja\n"] {
            assert_eq!(is_yes(typed.as_bytes()).ok(), Some(false), "{typed:?}");
        }
    }
}
