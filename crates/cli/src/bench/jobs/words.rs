//! A word count by a job, beside the same counting code in threads alone, over the same files.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{NewJob, NewReduce, NewStage, WorkInput};
use ikada_worker::builtin::Counts;

use super::crew::Crew;
use super::report::{Aim, Row};
use super::{Bench, median};
use crate::demo::draw_text;
use crate::failure::Failure;

/// Bytes that the plain count reads at one time.
const READ_BYTES: usize = 256 << 10;
/// The job may take so many times as long as the plain count.
const TIMES_MAX: f64 = 1.15;
const BUCKET: &str = "bench-words";
/// How the tasks of a job get at their inputs.
const WAYS: [&str; 2] = ["read over connections", "read beside a node (--near)"];

impl Bench<'_> {
    pub(super) async fn words(&mut self) -> Result<(), Failure> {
        let mib = self.args.mib;
        let folder = self.nodes.folder().join("words");
        let input_bytes = self.args.input_mib as usize * (1 << 20);
        let count = (mib as usize * (1 << 20)).div_ceil(input_bytes);
        let files = move || write_texts(&folder, count, input_bytes);
        let files = tokio::task::spawn_blocking(files).await;
        let files = files.map_err(|error| Failure::failed(error.to_string()))??;
        let inputs = self.upload(&files).await?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        // While the results of some tasks are on their way, others count.
        let slots = 2 * cores as u32;
        let node = self.nodes.folders().remove(0).display().to_string();
        let (mut alone, mut jobs) = (Vec::new(), [Vec::new(), Vec::new()]);
        for round in 0..self.args.rounds {
            let (plain, expected) = count_plainly(files.clone(), cores).await?;
            alone.push(plain);
            for (way, near) in [None, Some(node.as_str())].into_iter().enumerate() {
                let queue = format!("bench-words-{round}-{way}");
                let seconds = self.count_as_job(&inputs, (&queue, slots), near, &expected).await?;
                jobs[way].push(seconds);
            }
        }
        let plain = median(&mut alone);
        let (megabytes, tasks) = (f64::from(mib), inputs.len());
        let what = format!("word count of {mib} MiB by {cores} threads alone");
        self.note(Row::new(what, megabytes / plain, "MiB/s"));
        for (way, seconds) in WAYS.into_iter().zip(&mut jobs) {
            let seconds = median(seconds);
            let what =
                format!("the same as a job of {tasks} tasks, one worker of {slots} slots, {way}");
            self.note(Row::new(what, megabytes / seconds, "MiB/s"));
            let row =
                Row::new(format!("{way}, beside threads alone"), seconds / plain, "times as long");
            self.note(row.with(Aim::AtMost(TIMES_MAX)));
        }
        Ok(())
    }

    /// Counts by a job; gives the seconds. A result other than the expected one is an error.
    async fn count_as_job(
        &self,
        inputs: &[WorkInput],
        (queue, slots): (&str, u32),
        near: Option<&str>,
        expected: &[u8],
    ) -> Result<f64, Failure> {
        let flags: Vec<&str> = ["--isolation", "best"]
            .into_iter()
            .chain(near.into_iter().flat_map(|it| ["--near", it]))
            .collect();
        let (root, urls) = (self.nodes.folder().to_owned(), self.nodes.urls());
        let crew = Crew::start(&root, &urls, (queue, slots), &["one"], &flags)?;
        // Until the worker is there.
        self.timed(&job(queue, inputs[..1].to_vec())).await?;
        let (ended, seconds) = self.timed(&job(queue, inputs.to_vec())).await?;
        drop(crew);
        let result = self.client.job_result(&ended.id).await?;
        let [output] = result.outputs.as_slice() else {
            return Err(Failure::failed("the word count has no result"));
        };
        let reader = self.client.get_object("jobs", &output.key, &GetOptions::default()).await?;
        match reader.collect().await? == expected {
            true => Ok(seconds),
            false => Err(Failure::failed("the word count differs from the plain one")),
        }
    }

    async fn upload(&self, files: &[PathBuf]) -> Result<Vec<WorkInput>, Failure> {
        let mut inputs = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            let (name, source) = (format!("{number:05}.txt"), ObjectSource::File(file.clone()));
            let stored =
                self.client.put_object(BUCKET, &name, &source, &PutOptions::default()).await?;
            inputs.push(WorkInput {
                name: name.clone(),
                bucket: Some(BUCKET.to_owned()),
                key: Some(name),
                version: Some(stored.version),
                digest: Some(stored.digest),
                ..WorkInput::default()
            });
        }
        Ok(inputs)
    }
}

fn job(queue: &str, inputs: Vec<WorkInput>) -> NewJob {
    let (map, reduce) = ("wordcount".to_owned(), "merge".to_owned());
    NewJob {
        queue: Some(queue.to_owned()),
        map: Some(NewStage { program: map, inputs, ..NewStage::default() }),
        reduce: Some(NewReduce { program: reduce, ..NewReduce::default() }),
        ..NewJob::default()
    }
}

/// Files of words, each of the size of an input.
fn write_texts(folder: &Path, count: usize, bytes: usize) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let (mut files, mut number) = (Vec::with_capacity(count), 0);
    for place in 0..count {
        let mut text = Vec::with_capacity(bytes + (bytes >> 4));
        while text.len() < bytes {
            text.extend_from_slice(&draw_text(number));
            number += 1;
        }
        text.truncate(bytes);
        let file = folder.join(format!("{place:05}.txt"));
        std::fs::write(&file, text).map_err(failed)?;
        files.push(file);
    }
    Ok(files)
}

/// Counts files by so many threads; gives the seconds and the lines.
async fn count_plainly(files: Vec<PathBuf>, threads: usize) -> Result<(f64, Vec<u8>), Failure> {
    let (files, next) = (Arc::new(files), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let count = || {
        let (files, next) = (files.clone(), next.clone());
        tokio::task::spawn_blocking(move || {
            let (mut counts, mut bytes) = (Counts::new(false), vec![0; READ_BYTES]);
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut file = std::fs::File::open(file)?;
                loop {
                    match file.read(&mut bytes)? {
                        0 => break,
                        read => counts.feed(&bytes[..read]),
                    }
                }
                counts.end();
            }
            Ok::<Counts, std::io::Error>(counts)
        })
    };
    let running: Vec<_> = (0..threads).map(|_| count()).collect();
    let mut all = Counts::new(false);
    for one in running {
        let counted = one.await.map_err(|error| Failure::failed(error.to_string()))?;
        all.absorb(&counted.map_err(|error| Failure::failed(error.to_string()))?);
    }
    let lines = all.lines();
    Ok((began.elapsed().as_secs_f64(), lines))
}
