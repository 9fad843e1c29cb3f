//! Outputs: files that become objects in the same step in which their task is completed, and in no other way.
//!
//! Promise (A4): only the completion that counts publishes; what a stale attempt uploaded is never named. Outputs of a
//! plain task are `tasks/<task>/<name>`, those of a job's task `jobs/<job>/<stage>/<index>/<name>`; both are routed by
//! the first part, so that the task and its outputs are in one shard. They go when their task or job does. An output that
//! was brought to an address is an object, too, which says where it lies: by it the same completion decides whose counts.

use minicbor::{Decode, Encode};

use crate::limits::{
    ADDRESS_BYTES_MAX, OBJECT_REFERENCES_MAX, OBJECT_VERSIONS_TOTAL_MAX, OUTPUTS_MAX,
};
use crate::object::{BUCKET_JOBS, BUCKET_LOGS, BUCKET_TASKS, Object, ObjectVersion, check_content};
use crate::reuse::digest_of_parts;
use crate::shard::Shard;
use crate::task::{Task, Work};
use crate::{BucketName, Digest, Digests, Fence, Namespace, ObjectName, RefusalCode, TaskId};

/// One file that a task brings.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Output {
    /// Its name among the task's outputs.
    #[n(0)]
    pub name: ObjectName,
    /// Bytes in all.
    #[n(1)]
    pub size: u64,
    /// What the bytes are.
    #[n(2)]
    pub content_type: String,
    /// Digest of all bytes.
    #[n(3)]
    pub digest: Digest,
    /// Digest of each piece.
    #[n(4)]
    pub chunks: Digests,
    /// Where the file lies, if it was brought to an address; then the bytes here say no more than that. None leaves no
    /// trace in encodings.
    #[n(5)]
    pub address: Option<String>,
}

impl Output {
    /// Whether it lies exactly where its attempt was told to bring it, if it lies anywhere else than here.
    fn is_well_placed(&self, beginning: Option<&str>) -> bool {
        let Some(address) = &self.address else {
            return true;
        };
        address.len() <= ADDRESS_BYTES_MAX
            && !address.contains(char::is_control)
            && beginning.and_then(|beginning| address.strip_prefix(beginning))
                == Some(self.name.as_str())
    }
}

/// What the addresses of an attempt's outputs begin with, if its work says where they go. Workers make them likewise.
fn addresses_of(work: &Work, id: &TaskId, fence: Fence) -> Option<String> {
    let url = work.output_url.as_deref()?;
    let slash = if url.ends_with('/') { "" } else { "/" };
    let part = match &work.job {
        Some(part) => format!("{}/{}/{}", part.job, part.stage, part.index),
        None => id.to_string(),
    };
    Some(format!("{url}{slash}{part}/{fence}/"))
}

impl Task {
    /// Bucket and beginning of the names of the task's outputs.
    pub(crate) fn output_place(&self) -> (&'static str, String) {
        let part = self.extras.as_ref().and_then(|extras| extras.work.as_ref()?.job.as_ref());
        match part {
            Some(part) => (BUCKET_JOBS, format!("{}/{}/{}/", part.job, part.stage, part.index)),
            None => (BUCKET_TASKS, format!("{}/", self.id)),
        }
    }
}

impl Task {
    /// Digest of checked outputs, by their names below the task's own and their contents; none if there are none.
    pub(crate) fn outputs_digest(&self, objects: &[Object]) -> Option<Digest> {
        let (_, beginning) = self.output_place();
        let mut parts: Vec<(&str, Digest)> = Vec::with_capacity(objects.len());
        for object in objects {
            let own = object.name.as_str().strip_prefix(&beginning)?;
            parts.push((own, object.newest()?.digest));
        }
        parts.sort_unstable();
        digest_of_parts(&parts)
    }
}

impl Shard {
    /// The objects that a completion publishes, checked before anything changes. What came from no attempt of its own has no
    /// addresses.
    pub(crate) fn prepare_outputs(
        &self,
        slot: u32,
        outputs: Vec<Output>,
        attempt: Option<(&TaskId, Fence)>,
    ) -> Result<Vec<Object>, RefusalCode> {
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        if outputs.len() > OUTPUTS_MAX {
            return Err(RefusalCode::TooLarge);
        }
        let pieces: usize = outputs.iter().map(|output| output.chunks.len()).sum();
        if self.index.object_versions + outputs.len() as u64 > OBJECT_VERSIONS_TOTAL_MAX
            || self.index.reference_count + pieces as u64 > OBJECT_REFERENCES_MAX
        {
            return Err(RefusalCode::TooManyObjects);
        }
        let (bucket, beginning) = task.output_place();
        let bucket = BucketName::parse(bucket).map_err(|_| RefusalCode::BadValue)?;
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let work = task.extras.as_ref().and_then(|extras| extras.work.as_ref());
        let addresses =
            work.zip(attempt).and_then(|(work, (id, fence))| addresses_of(work, id, fence));
        let mut objects: Vec<Object> = Vec::with_capacity(outputs.len());
        for output in outputs {
            check_content(output.size, &output.chunks, &output.content_type)?;
            if !output.is_well_placed(addresses.as_deref()) {
                return Err(RefusalCode::BadValue);
            }
            let name = ObjectName::parse(&format!("{beginning}{}", output.name))
                .map_err(|_| RefusalCode::BadValue)?;
            if objects.iter().any(|before| before.name == name) {
                return Err(RefusalCode::BadValue);
            }
            let version = ObjectVersion {
                version: 0,
                size: output.size,
                content_type: output.content_type,
                digest: output.digest,
                chunks: output.chunks,
                created_ms: self.core.time_ms,
                address: output.address,
            };
            let (namespace, bucket) = (namespace.clone(), bucket.clone());
            objects.push(Object { namespace, bucket, name, versions: vec![version] });
        }
        Ok(objects)
    }

    /// Publishes checked outputs. A task is completed once, so there is nothing of that name yet.
    pub(crate) fn publish(&mut self, objects: Vec<Object>) {
        for mut object in objects {
            let version = self.next_sequence();
            object.versions.iter_mut().for_each(|it| it.version = version);
            self.put_object(object);
        }
    }

    /// Removes the outputs and logs of a task that goes.
    pub(crate) fn withdraw_outputs(&mut self, task: &Task) {
        self.withdraw_logs(task);
        self.withdraw_checkpoint(task);
        let outputs = task.history.as_ref().map_or(0, |history| history.outputs);
        // Those of a job stay with it.
        if outputs == 0 || task.is_part_of_job() {
            return;
        }
        let (bucket, beginning) = task.output_place();
        let namespace = self.core.queues[task.queue as usize].namespace.clone();
        self.remove_objects(&namespace, bucket, &beginning, usize::from(outputs));
    }

    /// Removes what the attempts of a task have said. Only tasks with a program can have logs.
    fn withdraw_logs(&mut self, task: &Task) {
        let has_program = task.extras.as_ref().is_some_and(|extras| extras.work.is_some());
        if !has_program || self.core.objects.len() == 0 {
            return;
        }
        let namespace = self.core.queues[task.queue as usize].namespace.clone();
        let beginning = format!("{}/", task.id);
        self.remove_objects(&namespace, BUCKET_LOGS, &beginning, usize::from(u16::MAX));
    }

    /// Removes objects whose names begin so, up to a number; tells how many went.
    pub(crate) fn remove_objects(
        &mut self,
        namespace: &Namespace,
        bucket: &str,
        beginning: &str,
        count_max: usize,
    ) -> usize {
        let Ok(bucket) = BucketName::parse(bucket) else {
            return 0;
        };
        let page = self.objects(namespace, &bucket, beginning, None, count_max);
        for object in &page.objects {
            self.remove_object(&(namespace.clone(), bucket.clone(), object.name.clone()));
        }
        page.objects.len()
    }
}
