//! Reasons as sentences.

use ikada_state::{Explanation, Labels, Progress, TaskState, WaitReason};

use super::show::{show_progress, show_state};
use crate::v1::{ReasonInfo, TaskExplanation};

/// Why a task is where it is.
pub fn show_explanation(explanation: &Explanation) -> TaskExplanation {
    let reason = |reason| show_reason(explanation, reason);
    TaskExplanation {
        id: explanation.id.to_string(),
        queue: explanation.queue.to_string(),
        state: show_state(explanation.state),
        reasons: explanation.reasons.iter().map(reason).collect(),
        progress: explanation.progress.as_ref().map(show_progress),
    }
}

fn blank(reason: &WaitReason) -> ReasonInfo {
    ReasonInfo {
        code: reason.code().to_owned(),
        sentence: String::new(),
        since_ms: None,
        until_ms: None,
        worker: None,
        task: None,
        ahead: None,
        at_least: None,
    }
}

fn show_reason(explanation: &Explanation, reason: &WaitReason) -> ReasonInfo {
    let queue = &explanation.queue;
    let mut info = blank(reason);
    info.sentence = match reason {
        WaitReason::Finished { at_ms, dead } => {
            info.since_ms = Some(*at_ms);
            match (explanation.state, dead) {
                (TaskState::Dead, Some(dead)) => format!(
                    "it is dead ({}); `ikada task retry` gives it fresh attempts",
                    dead.as_str()
                ),
                (TaskState::Cancelled, _) => {
                    "it was cancelled; `ikada task retry` brings it back".to_owned()
                }
                _ => "it is done".to_owned(),
            }
        }
        WaitReason::Claimed { worker, since_ms } => {
            (info.worker, info.since_ms) = (Some(worker.to_string()), Some(*since_ms));
            match &explanation.progress {
                Some(progress) => format!("worker {worker} holds it, {}", progress_words(progress)),
                None => format!("worker {worker} holds it"),
            }
        }
        WaitReason::QueuePaused => {
            format!(
                "queue {queue} is paused; `ikada queue resume {queue}` hands its tasks out again"
            )
        }
        WaitReason::Delayed { until_ms } => {
            info.until_ms = Some(*until_ms);
            "its submitter wanted it later".to_owned()
        }
        WaitReason::BackingOff { until_ms, attempt } => {
            info.until_ms = Some(*until_ms);
            format!("attempt {attempt} failed, and it waits before the next one")
        }
        WaitReason::Behind { count, more } => {
            (info.ahead, info.at_least) = (Some(*count), Some(*more));
            let least = if *more { "at least " } else { "" };
            format!("{least}{count} tasks of queue {queue} come first in its shard")
        }
        WaitReason::NextInLine => {
            info.ahead = Some(0);
            format!("it is the next of queue {queue} in its shard to be handed out")
        }
        WaitReason::BehindKey { key_limit, holder } => {
            info.task = holder.as_ref().map(ToString::to_string);
            behind_key(explanation, *key_limit, info.task.as_deref())
        }
        WaitReason::NoWorkerAsked { ago_ms: Some(ago_ms) } => format!(
            "no worker with a free slot has asked for queue {queue} for {} s: all are busy or gone",
            ago_ms / 1000
        ),
        WaitReason::NoWorkerAsked { ago_ms: None } => {
            format!(
                "no worker with a free slot has asked for queue {queue} lately: is one running?"
            )
        }
        WaitReason::NoWorkerWithLabels { labels } => no_labels(explanation, labels),
    };
    info
}

fn behind_key(explanation: &Explanation, key_limit: u16, holder: Option<&str>) -> String {
    let (key, queue) = (explanation.id.routing_key(), &explanation.queue);
    let held = match key_limit {
        1 => format!("earlier tasks of key {key} in queue {queue} come first"),
        limit => format!("as many tasks of key {key} run as may ({limit} or fewer)"),
    };
    match holder {
        Some(holder) if key_limit == 1 => {
            format!("{held}, now {holder}; `ikada task explain {holder}` says how that one stands")
        }
        Some(holder) => format!("{held}, {holder} among them"),
        None => held,
    }
}

fn no_labels(explanation: &Explanation, labels: &Labels) -> String {
    let pairs = labels.pairs().iter().map(|(name, value)| format!("{name}={value}"));
    let (wanted, queue) = (pairs.collect::<Vec<_>>().join(", "), &explanation.queue);
    format!("workers ask for queue {queue}, but none with label {wanted} has asked lately")
}

fn progress_words(progress: &Progress) -> String {
    let Progress { permille, note } = progress;
    let share = format!("{}.{} % done", permille / 10, permille % 10);
    if note.is_empty() { share } else { format!("{share}: {note}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Label, QueueName, TaskId};

    #[test]
    fn a_reason_is_a_code_a_sentence_and_its_figures() {
        let explanation = Explanation {
            id: TaskId::parse("a").unwrap(),
            queue: QueueName::parse("mail").unwrap(),
            state: TaskState::Ready,
            reasons: vec![
                WaitReason::Behind { count: 3, more: false },
                WaitReason::NoWorkerAsked { ago_ms: Some(9_400) },
            ],
            progress: None,
        };
        let shown = show_explanation(&explanation);
        let codes: Vec<&str> = shown.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, ["behind", "no_worker_asked"]);
        assert_eq!(shown.reasons[0].ahead, Some(3));
        assert!(shown.reasons[1].sentence.contains("for 9 s"));
    }

    #[test]
    fn tq_19_a_running_task_tells_how_far_it_is() {
        let worker = ikada_state::WorkerId::parse("w").unwrap();
        let explanation = Explanation {
            id: TaskId::parse("a").unwrap(),
            queue: QueueName::parse("mail").unwrap(),
            state: TaskState::Claimed,
            reasons: vec![WaitReason::Claimed { worker, since_ms: 7 }],
            progress: Some(Progress::new(405, "page 81 of 200")),
        };
        let shown = show_explanation(&explanation);
        let sentence = "worker w holds it, 40.5 % done: page 81 of 200";
        assert_eq!(shown.reasons[0].sentence, sentence);
        assert_eq!(shown.progress.map(|progress| progress.permille), Some(405));
    }

    #[test]
    fn the_missing_labels_are_named() {
        let label = |text: &str| Label::parse(text).unwrap();
        let labels = Labels::new(vec![(label("gpu"), label("a100"))]).unwrap();
        let explanation = Explanation {
            id: TaskId::parse("a").unwrap(),
            queue: QueueName::parse("mail").unwrap(),
            state: TaskState::Ready,
            reasons: vec![WaitReason::NoWorkerWithLabels { labels }],
            progress: None,
        };
        let shown = show_explanation(&explanation);
        assert_eq!(shown.reasons[0].code, "no_worker_with_labels");
        assert!(shown.reasons[0].sentence.contains("none with label gpu=a100 has asked lately"));
    }
}
