//! A disk that fails to make writes durable, once: the node must not go on (F-13).

use std::process::Command;

use crate::cluster::{Cluster, is_passed_over};
use crate::fresh::{ikada, without_settings};
use crate::tracer;
use crate::work::{Stream, check_all_there};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_sync_fails_ends_at_once_and_recovers() {
    if !tracer::is_there() || is_passed_over("the database syncs entries, a node only notes") {
        return;
    }
    let mut cluster = Cluster::start().await;
    let victim = cluster.settle().await[&0];
    cluster.kill(victim);
    let mut program = without_settings(Command::new("strace"));
    program
        .args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync"])
        .args(["-e", "inject=fdatasync:error=EIO:when=30"])
        .arg(ikada().get_program());
    cluster.launch_by(victim, program);
    cluster.settle().await;
    let stream = Stream::start(&cluster.urls());
    let status = cluster.ended(victim).await;
    assert!(!status.success(), "it ended well in spite of a failed sync");
    let log = cluster.log(victim);
    assert!(log.contains("os error 5"), "{log}");
    stream.advance(50).await;
    cluster.launch(victim);
    cluster.settle().await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}
