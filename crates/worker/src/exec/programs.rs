//! Tasks that name a program: fetched, run, and their files uploaded.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use ikada_api::client::{ObjectSource, OpenSource};
use ikada_api::v1::{OutputItem, ProgramManifest, WorkInfo};
use ikada_api::{Client, abreast};

use super::at_hand::AtHand;
use super::cache::Manifests;
use super::checkpoints::Keeper;
use super::near::Objects;
use super::{
    Attempt, Carried, Code, Destination, Finish, FoundOutput, Log, Progress, Sandbox, Urls,
    abreast_at, cache, deliver, fetch, logs, stopped,
};
use crate::run::{Claimed, RunProgram, Running, Stop, TaskError, TaskResult};

/// The word in a command that stands for the program's own file.
const FILE: &str = "{file}";
/// What a module is begun by unless its manifest names another export.
const ENTRY: &str = "_start";

/// Runs commands and modules of the cluster's programs.
#[derive(Debug, Clone)]
pub struct Programs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    objects: Objects,
    sandbox: Sandbox,
    urls: Urls,
    store: PathBuf,
    manifests: Manifests,
    at_hand: AtHand,
}

impl Programs {
    /// Programs of this cluster, in this sandbox; inputs may come from some addresses, and outputs go to some.
    pub fn new(client: Client, sandbox: Sandbox, urls: Urls) -> Programs {
        let store = sandbox.config().work_dir.join("programs");
        let at_hand = AtHand::of(&store);
        let objects = Objects::new(client.clone(), urls.near.as_deref());
        Programs(Arc::new(Inner {
            client,
            objects,
            sandbox,
            urls,
            store,
            manifests: Manifests::default(),
            at_hand,
        }))
    }
}

impl RunProgram for Programs {
    fn run(&self, task: Claimed, stop: Stop) -> Running {
        let inner = self.0.clone();
        Box::pin(async move { inner.run(task, stop).await })
    }

    fn holds(&self) -> Vec<String> {
        self.0.at_hand.digests()
    }
}

impl Inner {
    async fn run(&self, task: Claimed, stop: Stop) -> Result<TaskResult, TaskError> {
        let mut task = task;
        let work = task.work.take();
        let work = work.ok_or_else(|| TaskError::give_up("the task names no program"))?;
        let destination = Destination::of(&work, &task.id, task.fence);
        let (mut told, stopping, word) = (stop.clone(), stop.clone(), stop.clone());
        let (code, _held) = tokio::select! {
            code = self.code(&work) => code?,
            () = told.told() => return Err(stopped()),
        };
        let log = Log::new(self.sandbox.config().limits.log_bytes);
        let name = format!("{}/{}", task.id, task.attempt);
        let attempt = Attempt {
            id: task.id.clone(),
            queue: task.queue.clone(),
            payload: std::mem::take(&mut task.payload),
            fence: task.fence,
            attempt: task.attempt,
            timeout: task.timeout,
            settings: work.settings.into_iter().collect(),
            traceparent: task.traceparent.take(),
            code,
        };
        let keeper = Keeper::new(&self.client, &task);
        let bring = async |folder: &Arc<super::Folder>| {
            let most = self.sandbox.config().limits.disk_bytes;
            fetch::inputs(&self.objects, &self.urls.inputs, &work.inputs, folder, most).await?;
            self.at_hand.read(&work.inputs);
            keeper.begin(folder).await
        };
        let publish = async |finish: Finish| self.publish(finish, destination, told).await;
        // Large, and made once for each attempt: it does not lie in every caller's frame.
        let running = Box::pin(self.sandbox.run(attempt, &log, stop, bring, publish));
        let running = keeper.keep_while(running, stopping);
        let tell = |progress: &Progress| task.progress(progress.share, &progress.words);
        logs::send_while(&self.client, &name, &log, tell, &word, running).await
    }

    /// Brings the program here and says how to run it. Its file is kept for as long as the handle to it.
    async fn code(&self, work: &WorkInfo) -> Result<(Code, Option<File>), TaskError> {
        let name = &work.program.name;
        let digest = work.program.digest.as_deref();
        let digest = digest.ok_or_else(|| TaskError::give_up(format!("{name} has no digest")))?;
        let manifest = self.manifests.get(&self.objects, &self.store, digest).await?;
        let file = match &manifest.file {
            Some(file) => {
                Some(cache::program(&self.objects, &self.store, "file", &file.digest).await?)
            }
            None => None,
        };
        self.at_hand.used(digest);
        let (file, held) = match file {
            Some((file, held)) => (Some(file), Some(held)),
            None => (None, None),
        };
        Ok((arrange(manifest, file, work.program.entry.clone())?, held))
    }

    /// Uploads the files, or brings them where their job wants them; they become visible with the completion.
    async fn publish(
        &self,
        finish: Finish,
        destination: Option<Destination>,
        mut told: Stop,
    ) -> Result<TaskResult, TaskError> {
        tokio::select! {
            published = self.upload(finish, destination) => published,
            () = told.told() => Err(stopped()),
        }
    }

    async fn upload(
        &self,
        finish: Finish,
        destination: Option<Destination>,
    ) -> Result<TaskResult, TaskError> {
        let destination = destination.as_ref();
        let store = async |output: FoundOutput| -> Result<OutputItem, TaskError> {
            let name = output.name.clone();
            match destination {
                Some(destination) => {
                    let made = Carried::file(&name, output.open()?);
                    destination.bring(&self.client, &self.urls.outputs, &name, made).await
                }
                None => {
                    let source = ObjectSource::Open(Arc::new(output));
                    deliver::store(&self.client, &source, &name).await
                }
            }
        };
        let most = abreast_at(destination);
        let outputs = abreast(most, finish.outputs.into_iter().map(store)).await?;
        Ok(finish.result.with_outputs(outputs))
    }
}

/// How a program is run; a module from what the task names, else from what its manifest names.
fn arrange(
    manifest: ProgramManifest,
    file: Option<PathBuf>,
    entry: Option<String>,
) -> Result<Code, TaskError> {
    match (manifest.kind.as_str(), file) {
        ("command", file) => {
            let path = file.as_ref().map(|file| file.to_string_lossy().into_owned());
            let put = |word: String| match &path {
                Some(path) => word.replace(FILE, path),
                None => word,
            };
            Ok(Code::Command { argv: manifest.argv.into_iter().map(put).collect(), file })
        }
        ("wasm", Some(file)) => {
            let entry = entry.or(manifest.entry).unwrap_or_else(|| ENTRY.to_owned());
            Ok(Code::Module { file, entry })
        }
        (kind, _) => Err(TaskError::give_up(format!("a program of kind {kind} cannot run here"))),
    }
}
