//! A disk that fails to make writes durable, once: the node must not go on (F-13).

use std::process::{Command, Stdio};

use crate::cluster::Cluster;
use crate::fresh::{ikada, without_settings};
use crate::work::{Stream, check_all_there};

fn have_tracer() -> bool {
    let probe = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=1000", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_sync_fails_ends_at_once_and_recovers() {
    if !have_tracer() {
        eprintln!("SKIPPED: strace is not installed or may not trace here; install it to run this");
        return;
    }
    let mut cluster = Cluster::start().await;
    let victim = cluster.settle().await[&0];
    cluster.kill(victim);
    let mut tracer = without_settings(Command::new("strace"));
    tracer
        .args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync"])
        .args(["-e", "inject=fdatasync:error=EIO:when=30"])
        .arg(ikada().get_program());
    cluster.launch_by(victim, tracer);
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
