//! The files of the audit log: `<number>.log`, the newest written to, old ones removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::chain::{self, FIRST};

/// A file is followed by another beyond this size.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files kept: with their size, the disk that the log may take.
const FILES_MAX: usize = 16;

/// The open end of the log.
pub(super) struct Files {
    folder: PathBuf,
    number: u64,
    file: File,
    bytes: u64,
    hash: [u8; 32],
}

impl Files {
    /// Opens the folder and goes on in a new file, from where the newest whole line ended.
    pub(super) fn open(folder: &Path) -> io::Result<Files> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let numbers = numbers(folder)?;
        let (mut number, mut hash) = (1, FIRST);
        if let Some(newest) = numbers.last() {
            number = newest + 1;
            hash = last_hash(&fs::read(path(folder, *newest))?);
        }
        let (file, bytes) = begin(folder, number, hash)?;
        let files = Files { folder: folder.to_owned(), number, file, bytes, hash };
        files.forget_old()?;
        Ok(files)
    }

    /// Appends lines and syncs them.
    pub(super) fn append(&mut self, records: &[String]) -> io::Result<()> {
        let mut text = String::new();
        for json in records {
            let (line, hash) = chain::link(self.hash, json);
            text.push_str(&line);
            self.hash = hash;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += text.len() as u64;
        if self.bytes > FILE_BYTES_MAX {
            self.number += 1;
            (self.file, self.bytes) = begin(&self.folder, self.number, self.hash)?;
            self.forget_old()?;
        }
        Ok(())
    }

    fn forget_old(&self) -> io::Result<()> {
        let numbers = numbers(&self.folder)?;
        let surplus = numbers.len().saturating_sub(FILES_MAX);
        for number in &numbers[..surplus] {
            fs::remove_file(path(&self.folder, *number))?;
        }
        Ok(())
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

/// The hash of the last line that is whole: a crash may have cut one off.
fn last_hash(bytes: &[u8]) -> [u8; 32] {
    let text = String::from_utf8_lossy(bytes);
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    chain::verify(whole).map_or(FIRST, |(_, _, hash)| hash)
}
