//! Modules: what they see, what they give, how they end.

use std::path::PathBuf;

use ikada_worker::exec::Code;

use crate::bench::{Bench, Ran};

/// Imports, memory and a few words of the interface that the texts below share.
const PRELUDE: &str = r#"
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_symlink" (func $path_symlink (param i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (memory (export "memory") 2)
"#;

/// Compiles a text to a module in the bench's folder.
pub fn write_module(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let bytes = wat::parse_str(format!("(module {PRELUDE} {text})")).expect("a module");
    bench.share(name, &bytes)
}

/// Runs a module.
pub async fn run(bench: &Bench, file: PathBuf, entry: &str) -> Ran {
    let mut attempt = Bench::attempt(Code::Module { file, entry: entry.to_owned() });
    attempt.payload = b"payload\n".to_vec();
    attempt.settings = vec![("top-k".to_owned(), "5".to_owned())];
    bench.run(attempt, None).await
}

// B4-13
#[tokio::test]
async fn b4_13_a_module_reads_inputs_and_payload_and_writes_outputs_and_result() {
    let bench = Bench::new();
    // Copies standard input and then the input file to the output file, and writes a result.
    let text = r#"
        (data (i32.const 1000) "in/letter") (data (i32.const 1020) "out/copy") (data (i32.const 1040) "result.json")
        (data (i32.const 1060) "{\"n\":1}")
        (func $open (param $path i32) (param $length i32) (param $flags i32) (param $rights i64) (result i32)
            (if (call $path_open (i32.const 3) (i32.const 0) (local.get $path) (local.get $length) (local.get $flags)
                    (local.get $rights) (local.get $rights) (i32.const 0) (i32.const 8)) (then (unreachable)))
            (i32.load (i32.const 8)))
        (func $write (param $fd i32) (param $at i32) (param $count i32)
            (i32.store (i32.const 16) (local.get $at)) (i32.store (i32.const 20) (local.get $count))
            (if (call $fd_write (local.get $fd) (i32.const 16) (i32.const 1) (i32.const 24)) (then (unreachable))))
        (func $copy (param $from i32) (param $to i32)
            (i32.store (i32.const 32) (i32.const 4096)) (i32.store (i32.const 36) (i32.const 4096))
            (if (call $fd_read (local.get $from) (i32.const 32) (i32.const 1) (i32.const 40)) (then (unreachable)))
            (call $write (local.get $to) (i32.const 4096) (i32.load (i32.const 40))))
        (func (export "_start") (local $out i32)
            (local.set $out (call $open (i32.const 1020) (i32.const 8) (i32.const 1) (i64.const 64)))
            (call $copy (i32.const 0) (local.get $out))
            (call $copy (call $open (i32.const 1000) (i32.const 9) (i32.const 0) (i64.const 2)) (local.get $out))
            (call $write (call $open (i32.const 1040) (i32.const 11) (i32.const 1) (i64.const 64)) (i32.const 1060) (i32.const 7))
            (call $write (i32.const 1) (i32.const 1000) (i32.const 9)))
    "#;
    let file = write_module(&bench, "good.wasm", text);
    let ran = run(&bench, file, "_start").await;
    let good = ran.good();
    assert_eq!(good.outputs, [("copy".to_owned(), "payload\ndear reader\n".to_owned())]);
    assert!(good.result == b"{\"n\":1}".to_vec().into());
    assert_eq!(ran.log, "in/letter\n");
    bench.assert_empty();
}

#[tokio::test]
async fn b4_29_exit_codes_and_traps_of_modules_are_failures_with_reasons() {
    let bench = Bench::new();
    let text = r#"
        (func (export "_start") (call $proc_exit (i32.const 3)))
        (func (export "trap") (unreachable))
        (func (export "pointless") (call $proc_exit (i32.const 65)))
        (func (export "fine"))
    "#;
    let file = write_module(&bench, "ends.wasm", text);
    assert_eq!(run(&bench, file.clone(), "_start").await.error(), "exit code 3");
    assert_eq!(run(&bench, file.clone(), "pointless").await.error(), "exit code 65");
    let trapped = run(&bench, file.clone(), "trap").await;
    assert!(trapped.error().starts_with("exit code 70"), "{}", trapped.error());
    run(&bench, file.clone(), "fine").await.good();
    let missing = run(&bench, file, "nothing").await;
    assert!(missing.error().starts_with("exit code 70"), "{}", missing.error());
}
