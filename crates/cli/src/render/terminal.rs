//! What others have written, as a terminal may have it: logs, results, objects, names and errors must not steer the terminal of whoever
//! reads them.
//!
//! Promise: letters, line ends (returns too, as programs that count upwards use them), tabs and colours come through. Every other control (moving the cursor, titles, the clipboard,
//! questions that the terminal answers as if its user had typed) is shown as a mark and does nothing.
//!
//! Leaves out: pipes and files, which get every byte.

use std::borrow::Cow;
use std::io::IsTerminal;

/// Stands for what is not let through.
const MARK: char = '\u{fffd}';
/// Longest sequence that sets colours: `ESC [ 38;2;255;255;255;48;2;255;255;255 m`.
const COLOUR_BYTES_MAX: usize = 48;

/// Where text goes that somebody else has written, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    is_terminal: bool,
    /// The end of the last piece, which may be the beginning of a letter or a colour.
    rest: Vec<u8>,
}

impl Terminal {
    /// Standard output.
    pub(crate) fn of_stdout() -> Terminal {
        Terminal { is_terminal: std::io::stdout().is_terminal(), rest: Vec::new() }
    }

    /// The next piece, as it may be written.
    pub(crate) fn show<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.is_terminal {
            return Cow::Borrowed(piece);
        }
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(piece);
        self.rest = bytes.split_off(bytes.len() - open_end(&bytes));
        Cow::Owned(harmless(&bytes).into_bytes())
    }
}

/// A text of somebody else's within words of ours.
pub(crate) fn plain(text: &str) -> String {
    harmless(text.as_bytes())
}

/// How many bytes at the end may mean something else once more has come.
fn open_end(bytes: &[u8]) -> usize {
    let colour = bytes.iter().rev().take(COLOUR_BYTES_MAX).position(|byte| *byte == 0x1b);
    if let Some(after) = colour
        && is_begun(&bytes[bytes.len() - after..])
    {
        return after + 1;
    }
    let is_lead = |byte: &u8| !(0x80..0xc0).contains(byte);
    let last = bytes.iter().rev().take(3).position(is_lead);
    match last.map(|before| (before + 1, bytes[bytes.len() - 1 - before])) {
        Some((there, 0xc0..=0xdf)) if there < 2 => there,
        Some((there, 0xe0..=0xef)) if there < 3 => there,
        Some((there, 0xf0..=0xff)) if there < 4 => there,
        _ => 0,
    }
}

/// Whether what follows an escape may still become a colour.
fn is_begun(after: &[u8]) -> bool {
    match after.split_first() {
        None => true,
        Some((first, numbers)) => *first == b'[' && numbers.iter().all(|byte| is_number(*byte)),
    }
}

fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b';' | b':')
}

fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(letter) = rest.chars().next() {
        let colour = colour_at(rest);
        let length = if colour > 0 { colour } else { letter.len_utf8() };
        match letter {
            '\n' | '\r' | '\t' => shown.push(letter),
            _ if colour > 0 => shown.push_str(&rest[..colour]),
            _ if letter.is_control() => shown.push(MARK),
            _ => shown.push(letter),
        }
        rest = &rest[length..];
    }
    shown
}

/// Bytes of the sequence here, if it sets colours and does nothing else.
fn colour_at(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = numbers.bytes().take(COLOUR_BYTES_MAX).position(|byte| !is_number(byte));
    match end {
        Some(end) if numbers.as_bytes()[end] == b'm' => end + 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal() -> Terminal {
        Terminal { is_terminal: true, rest: Vec::new() }
    }

    /// What is shown of pieces of so many bytes.
    fn shown(text: &[u8], piece: usize) -> String {
        let mut terminal = terminal();
        let pieces = text.chunks(piece).map(|piece| terminal.show(piece).into_owned());
        String::from_utf8(pieces.collect::<Vec<_>>().concat()).expect("text")
    }

    #[test]
    fn x_14_what_a_task_says_does_not_steer_a_terminal() {
        let good = "one\n\ttwo \u{1b}[1;31mred\u{1b}[0m \u{1b}[m gr\u{fc}n \u{1f300}\n";
        for (said, wanted) in [
            (good, good),
            ("\u{1b}]52;c;ZXZpbA==\u{7}x", "\u{fffd}]52;c;ZXZpbA==\u{fffd}x"),
            ("\u{1b}]0;title\u{1b}\\x", "\u{fffd}]0;title\u{fffd}\\x"),
            ("\u{1b}[2J\u{1b}[1;1Hx", "\u{fffd}[2J\u{fffd}[1;1Hx"),
            ("\u{1b}[6n\u{1b}cx", "\u{fffd}[6n\u{fffd}cx"),
            ("\u{9b}2J\u{9d}0;x", "\u{fffd}2J\u{fffd}0;x"),
            ("kept\rgone\u{8}\u{7f}x", "kept\rgone\u{fffd}\u{fffd}x"),
            ("\u{1b}[31\u{1b}[2Jmx", "\u{fffd}[31\u{fffd}[2Jmx"),
        ] {
            // Wherever pieces end.
            for piece in 1..=said.len() {
                assert_eq!(shown(said.as_bytes(), piece), wanted, "{said:?} in pieces of {piece}");
            }
        }
        assert_eq!(shown(b"a\xffb\xc3(", 9), "a\u{fffd}b\u{fffd}(");
        let endless = [b"\x1b[".to_vec(), vec![b'1'; 10_000], b"mx".to_vec()].concat();
        let mut terminal = terminal();
        let said: usize = endless.chunks(100).map(|piece| terminal.show(piece).len()).sum();
        assert!(said > 9_000 && terminal.rest.len() <= COLOUR_BYTES_MAX, "{said}");
    }

    #[test]
    fn a_pipe_gets_every_byte() {
        let mut pipe = Terminal::default();
        let said = b"\x1b]0;title\x07 \xff";
        assert!(matches!(pipe.show(said), Cow::Borrowed(shown) if shown == said));
    }
}
