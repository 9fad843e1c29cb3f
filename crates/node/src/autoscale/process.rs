//! The driver `process`: starts `ikada worker` processes on this machine.
//!
//! A worker leaves when it has been drained, so there is nothing to do for a lower number. Workers that were started here end
//! with this process: their standard input closes with it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};

use super::Wish;

/// Starts workers of this binary.
#[derive(Debug)]
pub struct ProcessDriver {
    /// The binary.
    pub program: PathBuf,
    /// What stands before the arguments of each worker: `worker --url ... --slots ...`.
    pub arguments: Vec<String>,
    /// Those that run.
    children: Mutex<Vec<Child>>,
}

impl ProcessDriver {
    /// A driver that has started nobody yet.
    pub fn new(program: PathBuf, arguments: Vec<String>) -> ProcessDriver {
        ProcessDriver { program, arguments, children: Mutex::default() }
    }

    /// Starts as many as are missing. Those that were started here and run count, whether or not they have registered: a
    /// worker that never does is not started again and again.
    pub fn scale(&self, wish: &Wish) -> Result<(), String> {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let running = children.len() as u32;
        for _ in wish.current.max(running)..wish.desired {
            let child = Command::new(&self.program)
                .args(&self.arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| format!("{}: {error}", self.program.display()))?;
            children.push(child);
        }
        if running > wish.current && wish.desired > wish.current {
            let silent = running - wish.current;
            return Err(format!(
                "{silent} workers that were started here run and are not listed as active: look at what they say, \
                 and at --autoscale-worker-args"
            ));
        }
        Ok(())
    }

    /// How many of those that it started still run.
    pub fn running(&self) -> usize {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        children.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b4_23_missing_workers_are_started_and_go_with_their_starter() {
        let driver = ProcessDriver::new("/bin/cat".into(), Vec::new());
        let wish = |current, desired| Wish { desired, current, reason: String::new() };
        driver.scale(&wish(1, 3)).unwrap();
        assert_eq!(driver.running(), 2);
        driver.scale(&wish(3, 1)).unwrap();
        assert_eq!(driver.running(), 2, "whoever leaves was drained");
        // Two run that are not listed: none of them is started a second time, and somebody is told.
        let error = driver.scale(&wish(0, 2)).unwrap_err();
        assert!(error.contains("2 workers") && error.contains("not listed"), "{error}");
        assert_eq!(driver.running(), 2);
        assert!(driver.scale(&wish(0, 3)).is_err());
        assert_eq!(driver.running(), 3, "what is missing beside them is started");
        let nothing = ProcessDriver::new("/nothing/here".into(), Vec::new());
        assert!(nothing.scale(&wish(0, 1)).is_err());
        let mut children = driver.children.into_inner().unwrap();
        for child in &mut children {
            // `cat` ends when its input does.
            drop(child.stdin.take());
            assert!(child.wait().await.unwrap().success());
        }
    }
}
