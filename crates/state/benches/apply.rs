//! Measures how fast one core applies entries, decoding included, and what a waiting task costs in
//! memory. Run: `cargo bench -p ikada-state`. Prints; asserts nothing about time.

// A benchmark reads the clock and the kernel's accounting; the crate itself does not.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Instant;

use ikada_state::{
    BatchBuilder, Claim, Command, Complete, Enqueue, Fence, Labels, Limits, Lsn, Namespace, Order,
    QueueName, Reply, RequestId, RequestKey, SessionId, Shard, TaskId, WorkerId,
};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ORDERS: usize = 256;

fn order(request: Option<String>, command: Command) -> Order {
    let key = |id: String| RequestKey { id: RequestId::parse(&id).expect("request id"), item: 0 };
    Order { namespace: Namespace::default(), request: request.map(key), command }
}

fn enqueue(number: usize, with_request: bool) -> Order {
    let id = TaskId::parse(&format!("task-{number:024x}")).expect("task id");
    let queue = QueueName::parse("default").expect("queue name");
    let request = with_request.then(|| format!("request-{number}"));
    order(request, Command::Enqueue(Enqueue::new(id, queue, vec![7u8; 100])))
}

fn claim() -> Order {
    let claim = Claim {
        share: None,
        holds: None,
        labels: Labels::default(),
        worker: WorkerId::parse("worker-1").expect("worker id"),
        session: SessionId(1),
        queues: vec![QueueName::parse("default").expect("queue name")],
        max: 1,
    };
    order(None, Command::Claim(claim))
}

fn complete(id: TaskId, fence: Fence) -> Order {
    let worker = WorkerId::parse("worker-1").expect("worker id");
    let result = Some(vec![1u8; 16].into());
    order(
        None,
        Command::Complete(Complete {
            keeps_digest: None,
            id,
            fence,
            worker,
            result,
            then: None,
            outputs: Vec::new(),
        }),
    )
}

struct Run {
    shard: Shard,
    index: u64,
}

impl Run {
    fn new() -> Run {
        Run { shard: Shard::genesis_with(0, 1, &[], Limits::default()), index: 0 }
    }

    fn apply(&mut self, entry: &[u8]) -> Vec<Reply> {
        self.index += 1;
        let applied = self.shard.apply(Lsn { term: 1, index: self.index }, entry);
        applied.replies
    }
}

fn batches(orders: impl Iterator<Item = Order>) -> Vec<Vec<u8>> {
    let (mut all, mut builder) = (Vec::new(), BatchBuilder::new());
    for order in orders {
        builder.push(&order);
        if builder.len() == BATCH_ORDERS {
            all.push(std::mem::take(&mut builder).finish(all.len() as u64 + 1));
        }
    }
    all.push(builder.finish(all.len() as u64 + 1));
    all
}

/// Time this thread spent on a processor, so that a busy machine does not blur the figure.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

fn measure(label: &str, commands: usize, work: impl FnOnce()) -> f64 {
    let (start, before) = (Instant::now(), processor_seconds());
    work();
    let elapsed = start.elapsed().as_secs_f64();
    let seconds = match (before, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => elapsed,
    };
    println!("{label:<40} {:>12.0} commands/s", commands as f64 / seconds);
    seconds
}

/// One phase after the other: a deep queue is filled, then drained.
fn lifecycle(label: &str, tasks: usize, with_request: bool) {
    println!("{label}: {tasks} tasks of 100 bytes, batches of {BATCH_ORDERS}");
    let mut run = Run::new();
    let entries = batches((0..tasks).map(|number| enqueue(number, with_request)));
    let mut seconds = measure("  enqueue", tasks, || {
        entries.iter().for_each(|entry| drop(run.apply(entry)));
    });
    let entries = batches((0..tasks).map(|_| claim()));
    let mut grants = Vec::with_capacity(tasks);
    seconds += measure("  claim", tasks, || {
        for entry in &entries {
            for reply in run.apply(entry) {
                if let Reply::Claimed { tasks } = reply {
                    grants.extend(tasks.into_iter().map(|grant| (grant.id, grant.fence)));
                }
            }
        }
    });
    assert_eq!(grants.len(), tasks, "every task was granted");
    let entries = batches(grants.into_iter().map(|(id, fence)| complete(id, fence)));
    seconds += measure("  complete", tasks, || {
        entries.iter().for_each(|entry| drop(run.apply(entry)));
    });
    let commands = 3 * tasks;
    println!("{:<40} {:>12.0} commands/s", "  together", commands as f64 / seconds);
}

/// All three verbs in turn on a queue that stays short, as on a healthy cluster.
fn steady(tasks: usize, with_request: bool) {
    let mut run = Run::new();
    let mut seconds = [0.0; 3];
    let timed = |run: &mut Run, entry: &[u8], seconds: &mut f64| {
        let (start, before) = (Instant::now(), processor_seconds());
        let replies = run.apply(entry);
        *seconds += match (before, processor_seconds()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed().as_secs_f64(),
        };
        replies
    };
    for round in 0..tasks / BATCH_ORDERS {
        let numbers = round * BATCH_ORDERS..(round + 1) * BATCH_ORDERS;
        let mut builder = BatchBuilder::new();
        numbers.for_each(|number| builder.push(&enqueue(number, with_request)));
        timed(&mut run, &builder.finish(1), &mut seconds[0]);
        let mut builder = BatchBuilder::new();
        (0..BATCH_ORDERS).for_each(|_| builder.push(&claim()));
        let replies = timed(&mut run, &builder.finish(1), &mut seconds[1]);
        let mut builder = BatchBuilder::new();
        for reply in replies {
            let Reply::Claimed { tasks } = reply else {
                continue;
            };
            tasks.into_iter().for_each(|grant| builder.push(&complete(grant.id, grant.fence)));
        }
        timed(&mut run, &builder.finish(1), &mut seconds[2]);
    }
    println!("steady: {tasks} tasks, request ids {with_request}");
    for (label, seconds) in ["  enqueue", "  claim", "  complete"].iter().zip(seconds) {
        println!("{label:<40} {:>12.0} commands/s", tasks as f64 / seconds);
    }
    let together = 3.0 * tasks as f64 / seconds.iter().sum::<f64>();
    println!("{:<40} {together:>12.0} commands/s", "  together");
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn memory(label: &str, tasks: usize, with_request: bool) {
    let mut run = Run::new();
    let before = resident_bytes();
    let mut number = 0;
    while number < tasks {
        let mut builder = BatchBuilder::new();
        for _ in 0..BATCH_ORDERS {
            builder.push(&enqueue(number, with_request));
            number += 1;
        }
        run.apply(&builder.finish(1));
    }
    let used = resident_bytes().saturating_sub(before) / number as u64;
    println!("{label:<40} {used:>12} bytes/task");
    let start = Instant::now();
    let frozen = run.shard.freeze();
    println!("{:<40} {:>12.3} ms", "  freeze", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let bytes: usize = frozen.chunks().map(|chunk| chunk.len()).sum();
    let seconds = start.elapsed().as_secs_f64();
    println!("{:<40} {:>12.0} MiB/s", "  snapshot", bytes as f64 / seconds / f64::from(1 << 20));
    let start = Instant::now();
    let restored = Shard::restore(frozen.chunks()).expect("restore");
    println!("{:<40} {:>12.3} s", "  write and restore", start.elapsed().as_secs_f64());
    assert_eq!(restored.hash(), run.shard.hash(), "the restored state is the same");
}

fn main() {
    if std::env::args().any(|argument| argument == "--steady") {
        steady(1_000_000, false);
        return steady(1_000_000, true);
    }
    if std::env::args().any(|argument| argument == "--memory") {
        return memory("memory, with request ids", 500_000, true);
    }
    memory("memory, no request ids", 1_000_000, false);
    // In a process of its own, since freed memory stays with this one.
    let child = std::env::current_exe()
        .and_then(|program| std::process::Command::new(program).arg("--memory").status());
    assert!(child.is_ok_and(|status| status.success()), "the second measurement ran");
    lifecycle("deep", 500_000, false);
    lifecycle("deep with request ids", 500_000, true);
    steady(1_000_000, false);
    steady(1_000_000, true);
}
