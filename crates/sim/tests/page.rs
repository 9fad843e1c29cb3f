//! The commands of docs/simulator.md: all are understood, and those that can be made small are run, with one short seed.

use std::path::Path;
use std::process::Command;

use clap::Parser;
use ikada_sim::args::Args;

/// What makes a command small; nothing for those that are long whatever they are told.
fn small(command: &str) -> Option<&'static [&'static str]> {
    match command {
        "run" | "meta" => Some(&["--seeds", "1", "--ops", "20"]),
        "replay" => Some(&["--ops", "20"]),
        _ => None,
    }
}

/// What the page gives to the simulator, line by line.
fn lines() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let page = std::fs::read_to_string(page).unwrap();
    let commands = page.lines().filter(|line| line.starts_with("cargo run --release -p ikada-sim"));
    let given = commands.filter_map(|line| line.split('#').next()?.split_once(" -- "));
    given.map(|(_, words)| words.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_commands_of_the_simulators_page_are_understood_and_the_short_ones_run() {
    let lines = lines();
    assert!(lines.len() >= 8, "{lines:?}");
    let mut run = 0;
    for mut words in lines {
        let whole = ["ikada-sim".to_owned()].into_iter().chain(words.iter().cloned());
        if let Err(error) = Args::try_parse_from(whole) {
            panic!("{words:?}: {error}");
        }
        let Some(more) = small(&words[0]) else { continue };
        if let Some(place) = words.iter().position(|word| word == "--seeds") {
            words.drain(place..place + 2);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_ikada-sim"));
        let output = command.args(&words).args(more).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}\n{told}", output.status);
        run += 1;
    }
    assert_eq!(run, 4, "run, run --postgres, meta and replay");
}
