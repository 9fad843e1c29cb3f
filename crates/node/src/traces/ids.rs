//! Identifiers of traces and spans, derived from names: whoever knows the task and the attempt's fence knows them.
//!
//! A job and its tasks are one trace; a task of no job is a trace of its own. A task that is submitted again under its old id
//! after its record was forgotten gets the old trace.

use ikada_replica::state::{Fence, Namespace, TaskId, Work};

/// Identifier of a trace.
pub(super) type TraceId = [u8; 16];
/// Identifier of a span.
pub(super) type SpanId = [u8; 8];

/// Names of one task's spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskIds {
    pub(super) trace: TraceId,
    /// The job's span, if the task is part of one.
    pub(super) job: Option<SpanId>,
    pub(super) task: SpanId,
}

/// The first bytes of a hash over parts that cannot run into each other. Never all zero, which would be no identifier.
fn derive<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hasher = blake3::Hasher::new_derive_key("ikada traces 1");
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut id = [0; N];
    hasher.finalize_xof().fill(&mut id);
    id[N - 1] |= u8::from(id == [0; N]);
    id
}

pub(super) fn trace_of_job(cluster: u64, namespace: &Namespace, job: &str) -> (TraceId, SpanId) {
    let cluster = cluster.to_le_bytes();
    let space = namespace.as_str().as_bytes();
    let trace = derive(&[b"job trace", &cluster, space, job.as_bytes()]);
    (trace, derive(&[b"job", &cluster, space, job.as_bytes()]))
}

pub(super) fn task_ids(
    cluster: u64,
    namespace: &Namespace,
    id: &TaskId,
    work: Option<&Work>,
) -> TaskIds {
    let number = cluster.to_le_bytes();
    let (space, name) = (namespace.as_str().as_bytes(), id.as_str().as_bytes());
    let task = derive(&[b"task", &number, space, name]);
    let part = work.and_then(|work| work.job.as_ref());
    let job = part.map(|part| trace_of_job(cluster, namespace, part.job.as_str()));
    let alone = || derive(&[b"task trace", &number, space, name]);
    TaskIds {
        trace: job.map_or_else(alone, |(trace, _)| trace),
        job: job.map(|(_, span)| span),
        task,
    }
}

pub(super) fn attempt_span(ids: &TaskIds, fence: Fence) -> SpanId {
    derive(&[b"attempt", &ids.task, &fence.0.to_le_bytes()])
}

pub(super) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a program gets as `TRACEPARENT`: its spans belong below the attempt's.
pub(crate) fn traceparent(
    cluster: u64,
    namespace: &Namespace,
    id: &TaskId,
    work: Option<&Work>,
    fence: Fence,
) -> String {
    let ids = task_ids(cluster, namespace, id, work);
    format!("00-{}-{}-01", hex(&ids.trace), hex(&attempt_span(&ids, fence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_differ_with_every_part_and_with_nothing_else() {
        let (space, other) = (Namespace::default(), Namespace::parse("team-b").unwrap());
        let id = |text: &str| TaskId::parse(text).unwrap();
        let base = task_ids(1, &space, &id("a"), None);
        assert_eq!(base, task_ids(1, &space, &id("a"), None));
        for different in [
            task_ids(2, &space, &id("a"), None),
            task_ids(1, &other, &id("a"), None),
            task_ids(1, &space, &id("b"), None),
        ] {
            assert!(different.trace != base.trace && different.task != base.task);
        }
        assert_ne!(attempt_span(&base, Fence(1)), attempt_span(&base, Fence(2)));
        assert_ne!(derive::<8>(&[b"ab", b"c"]), derive::<8>(&[b"a", b"bc"]));
    }

    #[test]
    fn a_traceparent_has_the_form_that_others_read() {
        let id = TaskId::parse("t").unwrap();
        let text = traceparent(7, &Namespace::default(), &id, None, Fence(3));
        let parts: Vec<&str> = text.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2]);
        assert!(text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{text}");
    }
}
