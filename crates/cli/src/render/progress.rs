//! How far long work is: bars with their rate and the time left, counters where the end is not known, spinners where nothing
//! can be counted. On standard error, and only where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a spinner turns.
const TURN_EVERY: Duration = Duration::from_millis(120);

/// So many things of a kind; the message comes last.
pub(crate) fn bar(length: u64, what: &str) -> ProgressBar {
    let template =
        format!("{{prefix}}{{bar:24}} {{pos}}/{{len}} {what}, {{per_sec}}, {{eta}} left {{msg}}");
    styled(ProgressBar::new(length), &template)
}

/// Bytes; without a length there is no time left to tell. The message comes first.
pub(crate) fn bytes_bar(length: Option<u64>) -> ProgressBar {
    match length {
        Some(length) => {
            let template = "{msg} {bar:24} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
            styled(ProgressBar::new(length), template)
        }
        None => {
            let template = "{spinner} {bytes}, {bytes_per_sec}, {elapsed}";
            styled(ProgressBar::no_length(), template)
        }
    }
}

/// Things of a kind whose number is not known.
pub(crate) fn counter(what: &str) -> ProgressBar {
    let template = format!("{{spinner}} {{pos}} {what}, {{per_sec}}, {{elapsed}}");
    styled(ProgressBar::no_length(), &template)
}

/// Work that cannot be counted. It turns until it is finished or dropped.
pub(crate) fn spinner(what: impl Into<String>) -> ProgressBar {
    let spinner = styled(ProgressBar::no_length(), "{spinner} {msg}, {elapsed}");
    spinner.set_message(what.into());
    spinner.enable_steady_tick(TURN_EVERY);
    spinner
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        for template in [
            "{prefix}{bar:24} {pos}/{len} x, {per_sec}, {eta} left {msg}",
            "{spinner} {msg}, {elapsed}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
        bar(10, "kills of nats").inc(10);
        bytes_bar(Some(3)).inc(3);
        counter("tasks").inc(1);
        spinner("waiting").finish_and_clear();
    }
}
