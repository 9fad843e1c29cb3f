//! What is done about a tool that a test needs and that is not installed, or a right that it needs and has not got: passed over by
//! name at home, a failure wherever somebody relies on the test having run.

/// Set to anything, the tests of whole processes keep their logs in a Postgres that each starts for itself.
pub const LOG_SWITCH: &str = "IKADA_TEST_POSTGRES";

/// Whether changes are judged here: then `.ci/run` installs all that tests need.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Whether a test of what needs Postgres must not be passed over: in CI, and where everything was to run in one.
pub fn is_postgres_needed() -> bool {
    is_ci() || std::env::var_os(LOG_SWITCH).is_some()
}

/// A gate that nobody passes through is none: where the test is needed, a missing tool is a failure. True if the test is passed over.
pub fn judge_missing(missing: Option<&str>, what: &str, is_needed: bool) -> bool {
    let Some(missing) = missing else { return false };
    assert!(!is_needed, "{missing} is needed here to try {what}");
    eprintln!("SKIPPED: {missing} is missing here; install or grant it to try {what}");
    true
}

#[test]
fn a_missing_tool_is_told_at_home_and_fails_where_it_is_needed() {
    assert!(!judge_missing(None, "it", true));
    assert!(judge_missing(Some("a-tool"), "it", false));
    let needed = std::panic::catch_unwind(|| judge_missing(Some("a-tool"), "it", true));
    assert!(needed.is_err(), "passed over although it is needed");
}
