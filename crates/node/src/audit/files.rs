//! The files of the audit log: `<number>.log`, the newest written to, old ones removed.
//!
//! Promise: the chain in a file is that of the lines that were written and synced. A batch that could not be, in part or
//! whole, is taken out again before anything else is written, and the chain goes on from before it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::chain::{self, FIRST};

/// A file is followed by another beyond this size.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The disk that the log may take; beyond it the oldest files go.
const LOG_BYTES_MAX: u64 = 16 * FILE_BYTES_MAX;
/// Most files kept, however small: each start of an older version began one.
const FILES_MAX: usize = 1_024;

/// The open end of the log.
pub(super) struct Files {
    folder: PathBuf,
    number: u64,
    file: File,
    /// Bytes of whole lines.
    bytes: u64,
    hash: [u8; 32],
    /// Whether the file may hold more than those.
    torn: bool,
    /// Kept for its room.
    text: Vec<u8>,
}

impl Files {
    /// Opens the folder and goes on from where the newest whole line ended: in its file, so that restarts push nothing out,
    /// unless that file is full or its chain is broken.
    pub(super) fn open(folder: &Path) -> io::Result<Files> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let newest = numbers(folder)?.last().copied();
        let (mut number, mut hash, mut open) = (1, FIRST, None);
        if let Some(newest) = newest {
            let content = fs::read(path(folder, newest))?;
            (number, hash) = (newest + 1, FIRST);
            if let Some((bytes, last)) = whole(&content) {
                hash = last;
                if bytes <= FILE_BYTES_MAX {
                    number = newest;
                    open = Some((reopen(folder, newest, bytes)?, bytes));
                }
            }
        }
        let (file, bytes) = match open {
            Some(open) => open,
            None => begin(folder, number, hash)?,
        };
        let (folder, text) = (folder.to_owned(), Vec::new());
        let files = Files { folder, number, file, bytes, hash, torn: false, text };
        files.forget_old()?;
        Ok(files)
    }

    /// Appends lines and syncs them: all, or none.
    pub(super) fn append(&mut self, records: &[impl Serialize]) -> io::Result<()> {
        self.mend()?;
        if self.bytes > FILE_BYTES_MAX
            && let Err(error) = self.rotate()
        {
            tracing::warn!(%error, "the audit log goes on in a file that is full");
        }
        let (mut hash, mut text) = (self.hash, std::mem::take(&mut self.text));
        text.clear();
        let printed = records.iter().try_for_each(|one| chain::link(&mut hash, &mut text, one));
        let written = printed.and_then(|()| {
            self.torn = true;
            self.file.write_all(&text)?;
            self.file.sync_data()
        });
        let length = text.len() as u64;
        self.text = text;
        written?;
        (self.hash, self.bytes, self.torn) = (hash, self.bytes + length, false);
        Ok(())
    }

    /// Cuts off what a failed write left.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.bytes)?;
            self.file.sync_data()?;
            self.torn = false;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let number = self.number + 1;
        let begun = begin(&self.folder, number, self.hash);
        if begun.is_err() {
            // A file without its head would break the chain, and its name must be free for the next try.
            let _ = fs::remove_file(path(&self.folder, number));
        }
        (self.file, self.bytes) = begun?;
        self.number = number;
        self.forget_old()
    }

    fn forget_old(&self) -> io::Result<()> {
        let (mut kept, mut bytes) = (0, 0);
        for number in numbers(&self.folder)?.into_iter().rev() {
            let path = path(&self.folder, number);
            let size = fs::metadata(&path)?.len();
            if number != self.number && (kept >= FILES_MAX || bytes + size > LOG_BYTES_MAX) {
                fs::remove_file(path)?;
                // Nothing older stays: a gap would look like lines that were taken out.
                bytes = LOG_BYTES_MAX;
            }
            (kept, bytes) = (kept + 1, bytes + size);
        }
        Ok(())
    }

    /// From now on writing fails, after some bytes; gives what makes it work again.
    #[cfg(test)]
    pub(super) fn break_it(&mut self) -> File {
        self.file.write_all(b"0123 {\"half").unwrap();
        let file = File::open(path(&self.folder, self.number)).unwrap();
        std::mem::replace(&mut self.file, file)
    }

    /// The way back.
    #[cfg(test)]
    pub(super) fn mend_it(&mut self, file: File) {
        self.file = file;
    }
}

fn begin(folder: &Path, number: u64, hash: [u8; 32]) -> io::Result<(File, u64)> {
    let path = path(folder, number);
    let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
    let head = chain::head(hash);
    file.write_all(head.as_bytes())?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok((file, head.len() as u64))
}

/// Opens a file to go on in it, without what a crash left of a line behind its whole ones.
fn reopen(folder: &Path, number: u64, bytes: u64) -> io::Result<File> {
    let file = OpenOptions::new().append(true).open(path(folder, number))?;
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
        file.sync_all()?;
    }
    Ok(file)
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The length of the lines that are whole, since a crash may have cut one off, and the hash of the last one. None if the
/// chain is broken.
fn whole(content: &[u8]) -> Option<(u64, [u8; 32])> {
    let end = content.iter().rposition(|byte| *byte == b'\n')? + 1;
    let text = std::str::from_utf8(&content[..end]).ok()?;
    let (_, _, hash) = chain::verify(text).ok()?;
    Some((end as u64, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_15_a_write_that_failed_leaves_the_chain_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        files.append(&["a"]).unwrap();
        let good = files.break_it();
        assert!(files.append(&["lost", "lost too"]).is_err());
        assert!(files.append(&["lost as well"]).is_err());
        files.mend_it(good);
        files.append(&["b", "c"]).unwrap();
        drop(files);
        let text = fs::read_to_string(folder.path().join("00000001.log")).unwrap();
        assert_eq!(chain::verify(&text).unwrap().0, 3, "{text}");
        let lines: Vec<&str> = text.lines().skip(1).map(|line| &line[65..]).collect();
        assert_eq!(
            lines,
            ["\"a\"", "\"b\"", "\"c\""],
            "what was written, in the order in which it came"
        );
    }

    // X15: a node that is restarted over and over keeps its lines.
    #[test]
    fn x_15_restarts_push_nothing_out() {
        let folder = tempfile::tempdir().unwrap();
        for life in 0..100 {
            Files::open(folder.path()).unwrap().append(&[life]).unwrap();
        }
        let text = fs::read_to_string(path(folder.path(), 1)).unwrap();
        assert_eq!(chain::verify(&text).unwrap().0, 100);
        assert_eq!(numbers(folder.path()).unwrap(), [1]);
        // Many small files, as older versions left them, are no reason to forget any.
        for number in 2..=40 {
            fs::write(path(folder.path(), number), "x").unwrap();
        }
        drop(Files::open(folder.path()).unwrap());
        assert_eq!(
            numbers(folder.path()).unwrap().len(),
            41,
            "and nothing goes on in a broken one"
        );
    }

    #[test]
    fn x_15_the_oldest_files_go_when_all_are_too_large() {
        let folder = tempfile::tempdir().unwrap();
        drop(Files::open(folder.path()).unwrap());
        // Holes take no room on the disk.
        for number in 2..=40 {
            let file = File::create(path(folder.path(), number)).unwrap();
            file.set_len(FILE_BYTES_MAX + 100).unwrap();
        }
        // Full, so that the log goes on behind it.
        let mut files = Files::open(folder.path()).unwrap();
        files.append(&["a"]).unwrap();
        let kept = numbers(folder.path()).unwrap();
        assert_eq!(kept.last(), Some(&41));
        assert!(kept.len() == 16 && kept.is_sorted_by(|one, next| one + 1 == *next), "{kept:?}");
    }

    #[test]
    fn x_15_a_full_file_is_followed_by_another_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        files.append(&["x".repeat(FILE_BYTES_MAX as usize)]).unwrap();
        drop(files);
        Files::open(folder.path()).unwrap().append(&["b"]).unwrap();
        let text = |number| fs::read_to_string(path(folder.path(), number)).unwrap();
        let (first, second) = (text(1), text(2));
        assert_eq!(chain::verify(&second).unwrap().1, chain::verify(&first).unwrap().2);
    }

    #[test]
    fn x_15_a_file_that_cannot_be_begun_costs_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        let begun = files.bytes;
        files.bytes = FILE_BYTES_MAX + 1;
        // A folder stands where the next file should.
        fs::create_dir(path(folder.path(), 2)).unwrap();
        files.append(&["a"]).unwrap();
        fs::remove_dir(path(folder.path(), 2)).unwrap();
        files.append(&["b"]).unwrap();
        assert!(files.bytes > begun && files.bytes < FILE_BYTES_MAX);
        let text = |number| fs::read_to_string(path(folder.path(), number)).unwrap();
        let (first, second) = (text(1), text(2));
        let (first, second) = (chain::verify(&first).unwrap(), chain::verify(&second).unwrap());
        assert_eq!((first.0, second.0, first.2), (1, 1, second.1));
    }
}
