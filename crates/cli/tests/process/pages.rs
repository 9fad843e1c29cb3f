//! The pages of the documentation, followed as they stand: every block of commands is run here, or names the test that runs
//! it. Commands inside of sentences and examples of help texts are read as the program would read them, by a test beside
//! the arguments (`args/examples_test.rs`); so is what takes hours, as benches at their full size do.

use std::path::{Path, PathBuf};

use crate::follow::{Reader, blocks};
use crate::fresh::ikada;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).expect("a page")
}

/// A reader who has `ikada dev` in another terminal, and some files.
async fn at_home(files: &str) -> Reader {
    let mut reader = Reader::new();
    reader.start("ikada dev --data home").await;
    reader.run(files);
    reader
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_job_goes_as_its_page_says() {
    let followed = Reader::new().follow(&read("docs/first-job.md")).await;
    assert_eq!(followed, (7, 2), "blocks run and compared");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_goes_as_the_readme_says() {
    assert_eq!(Reader::new().follow(&read("README.md")).await, (5, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_kept_as_their_page_says() {
    let files = "printf 'a,b\\n' > may.csv; mkdir site; echo hi > site/index.html; \
                 head -c 20000000 /dev/zero > disk.img";
    assert_eq!(at_home(files).await.follow(&read("docs/guides/objects.md")).await, (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_fire_as_their_page_says() {
    assert_eq!(at_home("true").await.follow(&read("docs/guides/schedules.md")).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_work_as_their_page_says() {
    assert_eq!(at_home("true").await.follow(&read("docs/guides/queues.md")).await, (5, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_held_as_their_page_says() {
    let files = "for name in backup.sh job serve; do printf '#!/bin/sh\\necho here\\n' > $name; \
                 chmod +x $name; done";
    assert_eq!(at_home(files).await.follow(&read("docs/guides/locks.md")).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_run_as_their_page_says() {
    let files = "mkdir texts; echo 'a b a' > texts/one.txt; echo 'b c' > texts/two.txt";
    assert_eq!(at_home(files).await.follow(&read("docs/guides/jobs.md")).await, (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_as_their_page_says() {
    assert_eq!(at_home("true").await.follow(&read("docs/guides/programs.md")).await, (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_come_and_go_as_their_page_says() {
    assert_eq!(at_home("true").await.follow(&read("docs/guides/workers.md")).await, (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_are_known_as_their_page_says() {
    let mut reader = Reader::new().with("IKADA_TOKEN_FILE", "@/data/admin-token");
    assert_eq!(reader.follow(&read("docs/guides/access.md")).await, (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_door_for_s3_opens_as_its_page_says() {
    let mut reader = Reader::new();
    reader.run("printf 'a,b\\n' > may.csv");
    assert_eq!(reader.follow(&read("docs/guides/s3.md")).await, (2, 0));
}

// The readme's first command, but for its build.
#[test]
fn the_demo_ends_well() {
    let ended = ikada().arg("demo").output().expect("the demo");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// All pages, the readme included.
fn pages() -> Vec<PathBuf> {
    let mut found = ["README.md", "ARCHITECTURE.md", "SECURITY.md", "sdk/python/README.md"]
        .map(|page| root().join(page))
        .to_vec();
    let mut folders = ["docs", "deploy", "examples"].map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|end| end == "md") => found.push(path),
                _ => {}
            }
        }
    }
    found
}

/// All sources of tests in one text.
fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, into),
            path if path.extension().is_some_and(|end| end == "rs" || end == "py") => {
                into.push_str(&std::fs::read_to_string(path).expect("a source"));
            }
            _ => {}
        }
    }
}

/// The last of the subcommands that a line of a page names: what it does. None of `server`, which every test here runs.
fn verb(line: &str) -> Option<&str> {
    let is_name = |word: &&str| word.bytes().all(|one| one.is_ascii_lowercase() || one == b'-');
    let mut words = line.trim().strip_prefix("ikada ")?.split(' ').take_while(is_name);
    let (noun, verb) = (words.next()?, words.next()?);
    let is_deeper = noun == "auth" && matches!(verb, "token" | "cert" | "s3-key");
    Some(if is_deeper { words.next().unwrap_or(verb) } else { verb }).filter(|_| noun != "server")
}

/// The text of a test, in Rust or in Python.
fn body<'a>(tests: &'a str, test: &str) -> Option<&'a str> {
    let rust = tests.find(&format!("fn {test}(")).map(|from| (from, "\n}\n"));
    let python = tests.find(&format!("def {test}(self")).map(|from| (from, "\n    def "));
    let (from, end) = rust.or(python)?;
    let text = &tests[from..];
    Some(&text[..text.find(end).unwrap_or(text.len())])
}

/// Commands of a block that the test which stands for it does not run. One that reads the page runs what it finds there.
fn not_run<'a>(page: &str, block: &'a str, test: &str) -> Vec<&'a str> {
    let file = page.rsplit('/').next().unwrap_or(page);
    if test.contains(file) {
        return Vec::new();
    }
    let is_word = |verb: &str| {
        test.split(|one: char| !one.is_ascii_alphanumeric() && one != '-').any(|word| word == verb)
    };
    block.lines().filter(|line| verb(line).is_some_and(|verb| !is_word(verb))).collect()
}

#[test]
fn the_verbs_of_a_block_are_looked_for_in_its_test() {
    assert_eq!(verb("ikada cluster remove 3    # one less"), Some("remove"));
    assert_eq!(verb("ikada auth cert list"), Some("list"));
    assert_eq!(verb("ikada server --data d"), None);
    let tests =
        "async fn one() {\n    run(&[\"add\", peer]);\n}\n\nfn two() {\n    run(\"remove\");\n}\n";
    let one = body(tests, "one").expect("there");
    let block = "ikada cluster add x\nikada cluster remove 3\n";
    assert_eq!(not_run("docs/a.md", block, one), ["ikada cluster remove 3"]);
    assert!(not_run("docs/a.md", block, "read(\"a.md\")").is_empty());
}

#[test]
fn every_block_of_commands_is_run_here_or_names_the_test_that_does() {
    let mut tests = String::new();
    sources(&root().join("crates"), &mut tests);
    sources(&root().join("sdk/python/tests"), &mut tests);
    let followed =
        std::fs::read_to_string(file!()).or_else(|_| std::fs::read_to_string(root().join(file!())));
    let followed = followed.expect("this file");
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        let name = page.strip_prefix(root()).expect("below").display().to_string();
        for block in blocks(&text) {
            assert!(!block.mark.is_empty(), "{name}: a block without a mark:\n{}", block.text);
            match block.elsewhere() {
                Some(test) => {
                    let is_test = tests.contains(&format!("fn {test}("))
                        || tests.contains(&format!("def {test}(self"));
                    let is_step = tests.contains(&format!("name: \"{test}\""));
                    assert!(is_test || is_step, "{name}: there is no test {test}");
                    let missing =
                        not_run(&name, block.text, body(&tests, test).unwrap_or(block.text));
                    assert!(missing.is_empty(), "{name}: {test} does not run {missing:?}");
                    count += 1;
                }
                None if block.mark.starts_with("sh") => {
                    assert!(followed.contains(&format!("\"{name}\"")), "{name} is not followed");
                    count += 1;
                }
                None => {}
            }
        }
    }
    assert!(count >= 30, "only {count} blocks were found");
}
