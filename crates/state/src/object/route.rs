//! What decides an object's shard: its bucket's name, or, in the buckets of outputs, the task or job that it is of.

use crate::BucketName;

/// The bucket of outputs of plain tasks, by task.
pub const BUCKET_TASKS: &str = "tasks";

/// The bucket of outputs of jobs, by job.
pub const BUCKET_JOBS: &str = "jobs";

/// The bucket of programs.
pub const BUCKET_PROGRAMS: &str = "programs";

/// The bucket of what attempts have said, by task.
pub const BUCKET_LOGS: &str = "logs";

/// The bucket of the parts of uploads, `<upload>/<number>`.
pub const BUCKET_UPLOADS: &str = "s3-uploads";

/// The bucket of what the autoscaler decided.
pub const BUCKET_AUTOSCALE: &str = "autoscale";

/// Whether objects of a bucket belong to a task or job, live in its shard, and go with it.
pub fn is_owned(bucket: &BucketName) -> bool {
    is_published(bucket) || bucket.as_str() == BUCKET_LOGS
}

/// Whether only completions write to a bucket.
pub fn is_published(bucket: &BucketName) -> bool {
    matches!(bucket.as_str(), BUCKET_JOBS | BUCKET_TASKS)
}

/// Whether only the cluster itself writes to a bucket.
pub fn is_reserved(bucket: &BucketName) -> bool {
    is_published(bucket) || matches!(bucket.as_str(), BUCKET_PROGRAMS | BUCKET_AUTOSCALE)
}

/// What decides the shard of an object, or of all objects whose names begin so.
pub fn routing_key<'a>(bucket: &'a BucketName, name: &'a str) -> &'a str {
    if !is_owned(bucket) {
        return bucket.as_str();
    }
    // The first part is the handle of a task, or the id of a job.
    let owner = name.split_once('/').map_or(name, |(owner, _)| owner);
    owner.split_once(':').map_or(owner, |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_routed_as_their_task_is() {
        let bucket = |name: &str| BucketName::parse(name).unwrap();
        assert_eq!(routing_key(&bucket("texts"), "a/b"), "texts");
        assert_eq!(routing_key(&bucket("programs"), "abc"), "programs");
        assert_eq!(routing_key(&bucket("tasks"), "k1:t1/out.txt"), "k1");
        assert_eq!(routing_key(&bucket("tasks"), "t1/out.txt"), "t1");
        assert_eq!(routing_key(&bucket("jobs"), "j1/map/0/out.txt"), "j1");
        assert_eq!(routing_key(&bucket("logs"), "k1:t1/2"), "k1");
    }
}
