//! The examples as WebAssembly modules and as a command, over real processes: built, pushed by the command line, run over
//! objects, reduced, and compared with a plain count.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::jobs::cli;
use crate::programs::WorkerProcess;

/// What compilers call WASI preview 1.
const TARGET: &str = "wasm32-wasip1";

/// Where the examples are.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/programs").join(name)
}

/// Compilers that may know the target: that of the toolchain, then the system's own with its own library.
const COMPILERS: [&str; 2] = ["rustc", "/usr/bin/rustc"];

/// What the compiler of C calls the same, where the examples are built in C because no other knows the target.
const TARGET_IN_C: &str = "wasm32-wasi";

/// Ways to build an example as a module, as its first lines tell people to.
fn ways(name: &str) -> Vec<Command> {
    let mut ways = Vec::new();
    for compiler in COMPILERS {
        let mut command = Command::new(compiler);
        command.args(["--edition", "2024", "-O", "--target", TARGET]);
        command.arg(example(&format!("{name}.rs")));
        ways.push(command);
    }
    let mut command = Command::new("clang");
    command.arg(format!("--target={TARGET_IN_C}")).arg("-O2").arg(example(&format!("{name}.c")));
    ways.push(command);
    ways
}

/// Builds an example as a module. None, with a word, if no compiler here knows the target.
fn build(folder: &TempDir, name: &str) -> Option<String> {
    let module = folder.path().join(format!("{name}-module.wasm"));
    let mut said = String::new();
    for mut way in ways(name) {
        match way.arg("-o").arg(&module).output() {
            Ok(built) if built.status.success() => {
                return Some(module.to_string_lossy().into_owned());
            }
            Ok(built) => said.push_str(&String::from_utf8_lossy(&built.stderr)),
            Err(error) => said.push_str(&format!("{}: {error}\n", way.get_program().display())),
        }
    }
    // An example that does not compile is a mistake wherever the target is.
    assert!(said.contains("can't find crate for") || !said.contains("error[E"), "{said}");
    let next = "clang, lld, wasi-libc and libclang-rt-dev-wasm32 do as well";
    eprintln!("SKIPPED: no compiler knows {TARGET}: rustup target add {TARGET}; {next}\n{said}");
    None
}

/// Texts in the folder, and how often each word is in them.
fn write_texts(folder: &TempDir) -> BTreeMap<String, u64> {
    let words = ["war", "and", "peace", "the", "prince", "of", "Moscow"];
    let mut counts = BTreeMap::new();
    for number in 0..12_usize {
        let mut text = String::new();
        for place in 0..400_usize {
            let word = words[(number + place * place) % words.len()];
            *counts.entry(word.to_lowercase()).or_insert(0) += 1;
            let end = [" ", ", ", ".\n"][place % 3];
            write!(text, "{word}{end}").expect("a text grows");
        }
        std::fs::write(folder.path().join(format!("{number}.txt")), text).expect("a file");
    }
    counts
}

fn good(cluster: &Cluster, folder: &TempDir, words: &[&str]) -> String {
    let (code, printed, said) = cli(cluster, folder, words);
    assert_eq!(code, Some(0), "{words:?}: {said}");
    printed
}

// B4-1, B4-12, B4-39, B4-40
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_12_words_are_counted_alike_by_a_module_and_by_a_command() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let expected = write_texts(&folder);
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &["--allow-command", "python3"]);
    let Some(module) = build(&folder, "wordcount") else { return };
    good(&cluster, &folder, &["program", "push", &module, "--name", "count-module"]);
    let script = example("wordcount.py").to_string_lossy().into_owned();
    good(
        &cluster,
        &folder,
        &["program", "push", &script, "--name", "count-command", "--", "python3", "{file}"],
    );
    for program in ["count-module", "count-command"] {
        let run = ["job", "run", "--map", program, "--input", "*.txt", "--reduce", "merge"];
        let printed = good(&cluster, &folder, &run);
        let line = |line: &str| {
            let (word, count) = line.split_once('\t').expect("a word and its count");
            (word.to_owned(), count.parse().expect("a number"))
        };
        let counted: BTreeMap<String, u64> = printed.lines().map(line).collect();
        assert_eq!(counted, expected, "{program}");
    }
    let Some(module) = build(&folder, "grep") else { return };
    good(&cluster, &folder, &["program", "push", &module, "--name", "find-module"]);
    let find = ["job", "run", "--map", "find-module", "--input", "2.txt", "--set"];
    let found = good(&cluster, &folder, &[&find[..], &["pattern=Moscow"]].concat());
    let text = std::fs::read_to_string(folder.path().join("2.txt")).expect("a text");
    let lines = text.lines().filter(|line| line.contains("Moscow")).count();
    assert!(lines > 0 && found.lines().count() == lines, "{lines}: {found}");
    // A module without the setting that it needs says so, and is not tried again.
    let (code, _, said) = cli(&cluster, &folder, &find[..6]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("exit code 65: set pattern to what you look for"), "{said}");
    drop(worker);
}

// B4-39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_39_the_command_line_refuses_what_cannot_run() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    };
    write("empty.wasm", b"\0asm\x01\0\0\0");
    write("count.py", b"print('hello')");
    // Refused by the cluster: 4. Usage: 2.
    for (words, wanted, named) in [
        (&["program", "push", "empty.wasm"][..], 4, "exports no function \"_start\""),
        (&["program", "push", "empty.wasm", "--entry", "main"], 4, "\"main\""),
        (&["program", "push", "count.py"], 2, "count.py is no WebAssembly module"),
        (&["program", "push", "missing.wasm"], 2, "missing.wasm"),
        (&["job", "run", "--map", "empty", "--input", "count.py"], 4, "empty"),
    ] {
        let (code, _, said) = cli(&cluster, &folder, words);
        assert_eq!(code, Some(wanted), "{words:?}: {said}");
        assert!(said.contains(named), "{words:?}: {said}");
    }
}

// The examples of examples/jobs, as its README tells people to run them (B4-2, B4-32, B4-33).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_32_b4_33_the_examples_of_jobs_run_as_they_are_told() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    for name in ["README.md", "count.py", "search.py", "shuffle.toml"] {
        std::fs::copy(examples.join(name), folder.path().join(name)).expect("an example");
    }
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &["--allow-command", "python3"]);
    let python = ["--", "python3", "{file}"];
    good(&cluster, &folder, &[&["program", "push", "count.py"][..], &python].concat());
    let count = |program| ["job", "run", "--map", program, "--input", "*.md", "--reduce", "merge"];
    let by_python = good(&cluster, &folder, &count("count"));
    assert!(by_python.contains("job\t") && by_python.lines().all(|line| line.contains('\t')));
    good(&cluster, &folder, &["job", "submit", "shuffle.toml", "--wait"]);
    good(&cluster, &folder, &["job", "result", "last", "--to", "parts"]);
    let mut parts = String::new();
    for part in std::fs::read_dir(folder.path().join("parts")).expect("a folder") {
        parts.push_str(&std::fs::read_to_string(part.expect("an entry").path()).expect("a part"));
    }
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let whole = good(&cluster, &folder, &count("wordcount"));
    assert_eq!(sorted(&parts), sorted(&whole), "partitions together are the whole");
    good(&cluster, &folder, &[&["program", "push", "search.py"][..], &python].concat());
    // The digest of 12345, so that the search is short.
    let digest = "digest=5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5";
    let search = ["job", "run", "--map", "search", "--range", "0..20000/2000", "--set", digest];
    let settle = ["--settle", "any", "--max-attempts", "1"];
    let found = good(&cluster, &folder, &[&search[..], &settle].concat());
    assert_eq!(found.trim(), "12345");
    drop(worker);
}
