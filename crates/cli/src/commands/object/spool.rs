//! Standard input, or a pipe, in a file without a name, so that an upload of any size can be sent again, and takes no memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use ikada_api::client::OpenSource;

use super::put::unreadable;
use crate::failure::Failure;

/// What came in. It goes with the process.
#[derive(Debug)]
pub(super) struct Spool(File);

impl Spool {
    /// Takes standard input to its end, into the folder for temporary files (`TMPDIR`).
    pub(super) fn of_stdin() -> Result<Spool, Failure> {
        Spool::of(&mut io::stdin().lock())
            .map_err(|error| Failure::failed(format!("standard input: {error}")))
    }

    /// Takes what a path names to its end.
    pub(super) fn of_path(path: &Path) -> Result<Spool, Failure> {
        let spooled = File::open(path).and_then(|mut input| Spool::of(&mut input));
        spooled.map_err(|error| unreadable(path, &error))
    }

    fn of(input: &mut impl io::Read) -> io::Result<Spool> {
        let mut file = unnamed_file()?;
        io::copy(input, &mut file)?;
        Ok(Spool(file))
    }
}

impl OpenSource for Spool {
    /// With a position of its own: a try that was given up may still be reading.
    fn open(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

fn unnamed_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let name = format!("ikada-put-{}-{:016x}", std::process::id(), fastrand::u64(..));
    let path = folder.join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_came_in_can_be_read_from_its_beginning_again_and_again() {
        let spool = Spool::of(&mut [7u8; 300_000].as_slice()).unwrap();
        let (mut first, mut second) = (spool.open().unwrap(), spool.open().unwrap());
        assert_eq!(first.metadata().unwrap().len(), 300_000);
        let mut bytes = Vec::new();
        first.read_exact(&mut [0; 1_000]).unwrap();
        assert_eq!(second.read_to_end(&mut bytes).unwrap(), 300_000);
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
