//! The machine's own clock: whether a time server keeps it.
//!
//! The kernel knows (`adjtimex`), but no safe call of ours asks it; so those are asked that keep the clock or ask the kernel themselves:
//! timesyncd by its mark, then `timedatectl`, then chrony. Promise: there is always a finding; where nobody can tell, it says that. How
//! far clocks of a cluster lie apart is another matter (`cluster.rs`), which needs no such helper.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::Finding;

/// timesyncd makes this file once it has set the clock.
const TIMESYNC_MARK: &str = "/run/systemd/timesync/synchronized";
/// A helper that says nothing for so long is taken to know nothing.
const HELPER_PATIENCE: Duration = Duration::from_secs(2);

/// Whether something keeps the clock.
pub(super) async fn time_source() -> Finding {
    if Path::new(TIMESYNC_MARK).exists() {
        return judge(Some(("timesyncd", true)));
    }
    let asked = ["show", "--property=NTPSynchronized", "--value"];
    if let Some(in_step) = said_by("timedatectl", &asked).await.as_deref().and_then(by_timedatectl)
    {
        return judge(Some(("timedatectl", in_step)));
    }
    let tracking = said_by("chronyc", &["-n", "tracking"]).await;
    judge(tracking.as_deref().and_then(by_chrony).map(|in_step| ("chrony", in_step)))
}

fn judge(told: Option<(&str, bool)>) -> Finding {
    let check = "clock";
    match told {
        Some((by, true)) => Finding::good(check, format!("in step with a time server, says {by}")),
        Some((by, false)) => Finding::doubtful(
            check,
            format!("not in step with any time server, says {by}"),
            "let timesyncd or chrony keep it: schedules and delays go by the clocks",
        ),
        None => Finding::doubtful(
            check,
            "nobody here tells whether a time server keeps it",
            "install systemd-timesyncd or chrony; in a container, look at the host's",
        ),
    }
}

/// What a helper prints; none if there is no such helper, or it fails.
async fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(HELPER_PATIENCE, command.output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn by_timedatectl(said: &str) -> Option<bool> {
    match said.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A line of `chronyc tracking`: `Leap status     : Normal`.
fn by_chrony(said: &str) -> Option<bool> {
    let line = said.lines().find_map(|line| line.strip_prefix("Leap status"))?;
    let status = line.split_once(':')?.1.trim();
    Some(matches!(status, "Normal" | "Insert second" | "Delete second"))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn what_helpers_say_is_read() {
        assert_eq!(by_timedatectl("yes\n"), Some(true));
        assert_eq!(by_timedatectl("no\n"), Some(false));
        assert_eq!(by_timedatectl(""), None, "an old timedatectl knows no such property");
        let tracking = |leap: &str| {
            format!(
                "Reference ID    : 0A000001 (10.0.0.1)\nStratum         : 3\nLeap status     : {leap}\n"
            )
        };
        assert_eq!(by_chrony(&tracking("Normal")), Some(true));
        assert_eq!(by_chrony(&tracking("Not synchronised")), Some(false));
        assert_eq!(by_chrony("506 Cannot talk to daemon\n"), None);
    }

    #[tokio::test]
    async fn there_is_always_a_word_on_the_clock() {
        assert_eq!(judge(Some(("chrony", true))).verdict, Verdict::Good);
        assert_eq!(judge(Some(("chrony", false))).verdict, Verdict::Doubtful);
        assert!(judge(None).advice.contains("look at the host"), "a container has no helper");
        assert_eq!(said_by("no-such-helper-anywhere", &[]).await, None);
        assert_ne!(time_source().await.verdict, Verdict::Bad, "a guess stops nobody");
    }
}
