//! `cargo xtask fuzz`: libFuzzer over the targets of `ikada_node::fuzz`, guided by coverage.
//!
//! Promises: no tracked file is edited: what a run discovers is kept below `target/fuzz`, and the next run begins with it;
//! an input that ends a target stays in `fuzz/artifacts` and is named. Without the tools it says what to install. Leaves
//! out: the ordinary tests that replay the corpora with every verification, and sanitizers: none of our code is unsafe,
//! so that they would only slow it down.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// The compiler whose instrumentation libFuzzer needs.
const TOOLCHAIN: &str = "nightly";
/// Inputs are no longer than this: every format shows all its parts in less.
const INPUT_BYTES_MAX: usize = 8 << 10;
/// A target that takes longer for one input hangs.
const INPUT_SECONDS_MAX: u64 = 10;
/// What a target may hold.
const MEMORY_MIB_MAX: u64 = 2_048;

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct FuzzArgs {
    /// Only these targets; all if none is named.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Print the names of the targets, then stop.
    #[arg(long)]
    list: bool,
}

/// Runs all; true if nothing was found.
pub fn run(root: &Path, args: &FuzzArgs) -> anyhow::Result<bool> {
    let known = targets(root)?;
    if args.list {
        known.iter().for_each(|name| println!("{name}"));
        return Ok(true);
    }
    if let Some(unknown) = args.targets.iter().find(|name| !known.contains(name)) {
        bail!("no target named `{unknown}`; the targets are {}", known.join(", "));
    }
    if let Some(missing) = missing_tool(root) {
        bail!("{missing}");
    }
    let chosen = if args.targets.is_empty() { &known } else { &args.targets };
    build(root, &args.targets)?;
    let mut rows = Vec::new();
    for target in chosen {
        eprintln!("\n== {target}: {} seconds", args.seconds);
        let begun = Instant::now();
        let is_well = feed(root, target, args.seconds)?;
        rows.push((target, is_well, begun.elapsed()));
    }
    print!("\n{}", table(&rows));
    Ok(rows.iter().all(|(_, is_well, _)| *is_well))
}

/// The targets, by their programs' files.
fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("fuzz/targets")).context("fuzz/targets")? {
        let path = entry.context("fuzz/targets")?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    Ok(names)
}

/// What to install, if something is missing.
fn missing_tool(root: &Path) -> Option<String> {
    let answers = |words: &[&str]| {
        let quiet =
            |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet(&mut nightly(root, words)).is_ok_and(|status| status.success())
    };
    if !answers(&["--version"]) {
        let install = format!("rustup toolchain install {TOOLCHAIN} --profile minimal");
        return Some(format!("libFuzzer needs a nightly compiler: run `{install}`"));
    }
    (!answers(&["fuzz", "--version"]))
        .then(|| "cargo-fuzz is missing: run `cargo install cargo-fuzz --locked`".to_owned())
}

/// A cargo of the nightly toolchain.
fn nightly(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN, "cargo"]).args(words).current_dir(root).stdin(Stdio::null());
    // Set by the cargo that runs us, for another workspace and another compiler.
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

/// `cargo fuzz` with what building and running share.
fn cargo_fuzz(root: &Path, verb: &str) -> Command {
    let mut command = nightly(root, &["fuzz", verb, "--sanitizer", "none"]);
    command.args(["--fuzz-dir", "fuzz", "--target-dir", "target/fuzz"]);
    command
}

/// Builds the named targets, or all at once. They share all but the last step; the first takes minutes.
fn build(root: &Path, targets: &[String]) -> anyhow::Result<()> {
    let build = |target: Option<&String>| {
        let status = cargo_fuzz(root, "build").args(target).status().context("cargo fuzz build")?;
        ensure!(status.success(), "the programs of fuzz/ could not be built");
        Ok(())
    };
    match targets {
        [] => build(None),
        named => named.iter().map(Some).try_for_each(build),
    }
}

/// Runs libFuzzer on a target; true if it found nothing.
fn feed(root: &Path, target: &str, seconds: u64) -> anyhow::Result<bool> {
    let found = format!("target/fuzz/corpus/{target}");
    std::fs::create_dir_all(root.join(&found)).with_context(|| found.clone())?;
    let kept = format!("fuzz/corpus/{target}");
    let mut command = cargo_fuzz(root, "run");
    command.args([target, &found, &kept, "--"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
    command.args(["-print_final_stats=1", "-verbosity=0"]);
    Ok(command.status().context("cargo fuzz run")?.success())
}

fn table(rows: &[(&String, bool, Duration)]) -> String {
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, is_well, elapsed) in rows {
        let word = if *is_well { "ok" } else { "FOUND" };
        text.push_str(&format!("{name:width$}  {word:5}  {:5.0} s\n", elapsed.as_secs_f64()));
    }
    let seconds: f64 = rows.iter().map(|(.., elapsed)| elapsed.as_secs_f64()).sum();
    text.push_str(&format!("{} targets, {seconds:.0} seconds; ", rows.len()));
    text.push_str(match rows.iter().all(|(_, is_well, _)| *is_well) {
        true => "nothing found\n",
        false => {
            "what was found is in fuzz/artifacts/<target>: mend it, and keep it in fuzz/corpus/<target>\n"
        }
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_was_found_and_where() {
        let (one, two) = ("log".to_owned(), "pre_auth_http".to_owned());
        let minute = Duration::from_secs(60);
        let well = table(&[(&one, true, minute), (&two, true, minute)]);
        assert!(well.contains("2 targets, 120 seconds; nothing found"), "{well}");
        let found = table(&[(&one, true, minute), (&two, false, minute)]);
        assert!(
            found.contains("pre_auth_http  FOUND") && found.contains("fuzz/artifacts"),
            "{found}"
        );
    }

    #[test]
    fn targets_are_known_by_their_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let names = targets(&root).unwrap();
        assert!(names.iter().any(|name| name == "log"), "{names:?}");
        let args = FuzzArgs { targets: vec!["nothing".to_owned()], seconds: 1, list: false };
        let error = run(&root, &args).unwrap_err().to_string();
        assert!(error.contains("no target named `nothing`"), "{error}");
    }
}
