//! One attempt from folder to finish.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::bound::{Group, GroupRule, Groups};
use super::folders::Folders;
use super::home::Home;
use super::process::{Cut, Ended, FORCE_AFTER, Run};
use super::stewards::Stewards;
use super::strays::MARK;
use super::users::Users;
use super::{
    Attempt, Code, ExecConfig, Finish, Folder, Log, Stop, closed_way, outputs, process, stopped,
};
use crate::run::TaskError;
use crate::sandbox::{Isolation, Limits, MODULE, Spec, Status, Walls};

/// Exit code by which a program says that trying again is pointless (`EX_DATAERR`).
const EXIT_POINTLESS: i32 = 65;
/// What the engine of modules needs beside their memory.
const ENGINE_BYTES: u64 = 256 << 20;
/// Where programs look for other programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why nothing can run here.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The folder for attempts cannot be used.
    #[error("work folder {folder}: {error}")]
    Folder {
        /// Which.
        folder: String,
        /// Why.
        error: std::io::Error,
    },
    /// Programs run as users of their own, who cannot come to their folders.
    #[error(
        "work folder {folder}: programs run as users of their own, and {closed} is closed to them; \
         name another one with --work-dir, or let others pass with chmod o+x"
    )]
    Closed {
        /// Which.
        folder: String,
        /// The folder on the way.
        closed: String,
    },
    /// The helper does not answer.
    #[error("the sandbox cannot be tried: {0}")]
    Probe(std::io::Error),
    /// The kernel lacks a wall that was asked for.
    #[error(
        "this machine cannot isolate programs fully ({missing}); allow less with --isolation best"
    )]
    Walls {
        /// What is missing.
        missing: String,
    },
    /// The machine gives no control groups, and they were asked for.
    #[error(
        "this machine gives no control groups ({why}); do without them with --control-groups best"
    )]
    Groups {
        /// What is in the way.
        why: String,
    },
}

/// Runs attempts on this machine.
#[derive(Debug, Clone)]
pub struct Sandbox {
    config: ExecConfig,
    users: Users,
    walls: Walls,
    groups: Result<Groups, String>,
    folders: Folders,
    /// Where nothing is isolated.
    stewards: Option<Arc<Stewards>>,
}

impl Sandbox {
    /// Looks at the machine and refuses to begin where it gives less isolation than was asked for.
    pub fn open(config: ExecConfig) -> Result<Sandbox, SandboxError> {
        let failed =
            |error| SandboxError::Folder { folder: config.work_dir.display().to_string(), error };
        let home = Home::open(&config.work_dir).map_err(failed)?;
        Folder::make(home.path(), None).map(drop).map_err(failed)?;
        let mut walls = crate::sandbox::probe(&config.helper).map_err(SandboxError::Probe)?;
        // Without isolation a program is the worker's user in every respect.
        let users = match config.isolation {
            Isolation::None => Users::none(),
            Isolation::Full | Isolation::Best => Users::new(),
        };
        note_users(&mut walls, &config, users.are_their_own());
        if config.isolation == Isolation::Full && !walls.is_full() {
            return Err(SandboxError::Walls { missing: walls.missing.join("; ") });
        }
        if users.are_their_own()
            && let Some(closed) = closed_way(&config.work_dir)
        {
            let folder = config.work_dir.display().to_string();
            return Err(SandboxError::Closed { folder, closed: closed.display().to_string() });
        }
        let groups = match config.groups {
            GroupRule::Off => Err("not asked for".to_owned()),
            GroupRule::Best | GroupRule::Require => Groups::find(),
        };
        match (&groups, config.groups) {
            (Err(why), GroupRule::Require) => Err(SandboxError::Groups { why: why.clone() }),
            _ => {
                // With walls, nothing of one run serves another: neither its folder nor its helpers.
                let shares = config.isolation == Isolation::None;
                let folders = Folders::new(home, shares);
                let stewards = shares.then(|| Arc::new(Stewards::new(config.helper.clone())));
                Ok(Sandbox { config, users, walls, groups, folders, stewards })
            }
        }
    }

    /// The control groups that bound a run as a whole; an error says why there are none.
    pub fn groups(&self) -> Result<&Groups, &str> {
        self.groups.as_ref().map_err(String::as_str)
    }

    /// The group of one run. Where the machine gave groups, nothing runs without.
    fn group(&self, limits: &Limits) -> Result<Option<Group>, TaskError> {
        let group = self.groups.as_ref().ok().map(|groups| groups.make(limits));
        group
            .transpose()
            .map_err(|error| TaskError::new(format!("not started: its control group: {error}")))
    }

    /// What this machine gives.
    pub fn walls(&self) -> &Walls {
        &self.walls
    }

    /// Whether programs run as somebody else than the worker.
    pub(super) fn has_users(&self) -> bool {
        self.users.are_their_own()
    }

    /// The settings.
    pub fn config(&self) -> &ExecConfig {
        &self.config
    }

    /// Runs one attempt: `bring` puts the inputs into the folder, `publish` takes the finish while the files still exist.
    pub async fn run<B, P, T>(
        &self,
        attempt: Attempt,
        log: &Log,
        stop: Stop,
        bring: B,
        publish: P,
    ) -> Result<T, TaskError>
    where
        B: AsyncFnOnce(&Arc<Folder>) -> Result<(), TaskError>,
        P: AsyncFnOnce(Finish) -> Result<T, TaskError>,
    {
        let user = self.users.take();
        // Whoever was handed it may look once more when the run is over; then it goes.
        let folder = Arc::new(self.folders.take(user.id)?);
        let done = self.run_in(&folder, user.id, attempt, (log, stop), bring, publish).await;
        Folder::put_away(folder).await;
        done
    }

    async fn run_in<B, P, T>(
        &self,
        folder: &Arc<Folder>,
        user: Option<u32>,
        attempt: Attempt,
        (log, stop): (&Log, Stop),
        bring: B,
        publish: P,
    ) -> Result<T, TaskError>
    where
        B: AsyncFnOnce(&Arc<Folder>) -> Result<(), TaskError>,
        P: AsyncFnOnce(Finish) -> Result<T, TaskError>,
    {
        let mut told = stop.clone();
        tokio::select! {
            brought = bring(folder) => brought?,
            () = told.told() => return Err(stopped()),
        }
        let spec = self.order(folder, &attempt)?;
        let settings: serde_json::Map<String, serde_json::Value> = attempt
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        folder.write_settings(&serde_json::to_vec(&settings)?)?;
        let limits = &self.config.limits;
        let mut run = Run {
            helper: &self.config.helper,
            folder,
            user,
            limits,
            wall: Duration::from_millis(wall_ms(&attempt, limits)),
            group: None,
        };
        folder.lend(Duration::from_millis(limits.grace_ms) + FORCE_AFTER);
        let ended = match (&self.stewards, &attempt.code) {
            (Some(stewards), Code::Command { .. }) => {
                let groups = self.groups.as_ref().ok();
                stewards.run(&run, groups, &spec, &attempt.payload, (log, stop)).await?
            }
            _ => {
                folder.write(&folder.payload(), &attempt.payload)?;
                folder.write(&folder.order(), &serde_json::to_vec(&spec)?)?;
                run.group = self.group(&spec.limits)?;
                process::run(&run, log, stop).await?
            }
        };
        folder.ended(ended.is_quiet);
        judge(&ended, log)?;
        let finish = Finish { result: outputs::result(folder)?, outputs: outputs::find(folder)? };
        publish(finish).await
    }

    fn order(&self, folder: &Folder, attempt: &Attempt) -> Result<Spec, TaskError> {
        let config = &self.config;
        let mut readable = config.readable.clone();
        let mut limits = config.limits;
        let (program, arguments, network) = match &attempt.code {
            Code::Command { argv, file } => {
                let (program, arguments) = argv
                    .split_first()
                    .ok_or_else(|| TaskError::give_up("the command has no words"))?;
                let own = file.as_ref().is_some_and(|file| file == program);
                self.check_allowed(if own { "{file}" } else { program })?;
                readable.extend(file.clone());
                if program.starts_with('/') {
                    readable.push(PathBuf::from(program));
                }
                (Some(program.clone()), arguments.to_vec(), config.network)
            }
            Code::Module { file, entry } => {
                readable.extend([file.clone(), PathBuf::from("/proc/self/exe")]);
                let file = file.to_string_lossy().into_owned();
                let (memory, wall) = (limits.memory_bytes.to_string(), wall_ms(attempt, &limits));
                limits.memory_bytes = limits.memory_bytes.saturating_add(ENGINE_BYTES);
                let steps = limits.module_steps.to_string();
                let order =
                    [MODULE.to_owned(), file, entry.clone(), memory, wall.to_string(), steps];
                (None, order.to_vec(), false)
            }
        };
        Ok(Spec {
            program,
            arguments,
            environment: environment(folder, attempt),
            folder: folder.task(),
            stdin: folder.payload(),
            status: folder.status(),
            readable,
            isolation: config.isolation,
            network,
            limits,
            inside: false,
        })
    }

    fn check_allowed(&self, program: &str) -> Result<(), TaskError> {
        let allowed = |rule: &String| rule == "*" || rule == program;
        match self.config.commands.iter().any(allowed) {
            true => Ok(()),
            false => Err(TaskError::new(format!(
                "this worker does not allow the command {program:?}; its operator can, with --allow-command"
            ))),
        }
    }
}

/// Notes whether commands are somebody else than the worker. Modules never leave the engine; they need no such wall.
fn note_users(walls: &mut Walls, config: &ExecConfig, are_their_own: bool) {
    walls.users = are_their_own || config.commands.is_empty();
    if !walls.users {
        let why = "users: commands run as the worker's own user, since the worker is not root";
        walls.missing.push(why.to_owned());
    }
}

/// Longest time for an attempt.
fn wall_ms(attempt: &Attempt, limits: &Limits) -> u64 {
    let asked = attempt.timeout.map_or(u64::MAX, |timeout| timeout.as_millis() as u64);
    asked.min(limits.wall_ms)
}

fn environment(folder: &Folder, attempt: &Attempt) -> Vec<(String, String)> {
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let fixed = [
        ("PATH", PATH.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("HOME", path(folder.task())),
        ("TMPDIR", path(folder.tmp())),
        ("IKADA_TASK_ID", attempt.id.clone()),
        ("IKADA_QUEUE", attempt.queue.clone()),
        ("IKADA_ATTEMPT", attempt.attempt.to_string()),
        ("IKADA_FENCE", attempt.fence.to_string()),
        ("IKADA_IN", path(folder.inputs())),
        (MARK, path(folder.outputs())),
        ("IKADA_RESULT", path(folder.result())),
        ("IKADA_CHECKPOINT", path(folder.checkpoint())),
        ("IKADA_SETTINGS", path(folder.settings())),
    ];
    let mut all: Vec<(String, String)> =
        fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    all.extend(attempt.traceparent.iter().map(|place| ("TRACEPARENT".to_owned(), place.clone())));
    let settings = attempt.settings.iter().filter(|(_, value)| !value.contains('\0'));
    all.extend(settings.map(|(name, value)| (setting_name(name), value.clone())));
    all
}

/// `top-k` becomes `IKADA_SETTING_TOP_K`.
fn setting_name(name: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter.to_ascii_uppercase(),
        false => '_',
    };
    format!("IKADA_SETTING_{}", name.chars().map(letter).collect::<String>())
}

/// What an end means for the attempt.
fn judge(ended: &Ended, log: &Log) -> Result<(), TaskError> {
    let met = ended.met;
    match &ended.cut {
        Some(Cut::Told) => return Err(stopped()),
        Some(Cut::Late(wall)) => {
            let seconds = wall.as_secs_f64();
            return Err(TaskError::new(format!("not done within {seconds} s; it was ended")));
        }
        Some(Cut::TooMuch(what)) => {
            return Err(TaskError::new(format!("it wrote {what}; it was ended")));
        }
        None => {}
    }
    let mut words = match log.last_line() {
        line if line.is_empty() => String::new(),
        line => format!(": {line}"),
    };
    if let Some(met) = met {
        words = format!(" ({met}){words}");
    }
    match &ended.status {
        Status::Exited(0) => Ok(()),
        Status::Exited(EXIT_POINTLESS) => {
            Err(TaskError::give_up(format!("exit code {EXIT_POINTLESS}{words}")))
        }
        Status::Exited(code) => Err(TaskError::new(format!("exit code {code}{words}"))),
        Status::Signalled(signal) => {
            Err(TaskError::new(format!("ended by signal {signal}{words}")))
        }
        Status::Stopped => Err(stopped()),
        // The kernel may have ended the helpers along with the program.
        Status::NotStarted(_) if met.is_some() => Err(TaskError::new(format!("ended{words}"))),
        Status::NotStarted(why) => Err(TaskError::new(format!("not started: {why}"))),
        Status::NoIsolation(why) => {
            Err(TaskError::new(format!("not started: this machine cannot isolate it ({why})")))
        }
    }
}

#[cfg(test)]
#[path = "run_test.rs"]
mod run_test;
