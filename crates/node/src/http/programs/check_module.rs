//! Whether a module can run at all: valid, begun by what it exports, and asking for nothing that workers do not give
//! (B4-39).
//!
//! Leaves out: how much it will use, and what its imports take and give; the worker's engine looks at both.

use wasmparser::types::Types;
use wasmparser::{ExternalKind, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// The only interface that modules may import from.
const INTERFACE: &str = "wasi_snapshot_preview1";
/// What begins the names of its calls for sockets, which workers do not give: there is no network.
const SOCKETS: &str = "sock_";
/// All its other calls.
const CALLS: &[&str] = &[
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
];
/// What modules may use of the language: what compilers for WASI preview 1 emit, and no more.
const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::GC_TYPES);

/// Checks a module; the words name what is wrong with it.
pub(super) fn check_module(bytes: &[u8], entry: &str) -> Result<(), String> {
    if !bytes.starts_with(b"\0asm") {
        return Err("is no WebAssembly module: it must be binary and begin with \\0asm".to_owned());
    }
    let types = Validator::new_with_features(FEATURES).validate_all(bytes).map_err(invalid)?;
    let (mut begins, mut has_memory) = (false, false);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(invalid)?;
                    check_import(import.module, import.name, import.ty)?;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.map_err(invalid)?;
                    has_memory |= export.kind == ExternalKind::Memory && export.name == "memory";
                    if export.kind == ExternalKind::Func && export.name == entry {
                        check_entry(&types, export.index, entry)?;
                        begins = true;
                    }
                }
            }
            _ => {}
        }
    }
    if !begins {
        return Err(format!(
            "exports no function {entry:?}; build it as a program, or name its entry"
        ));
    }
    match has_memory {
        true => Ok(()),
        false => Err("exports no memory; build it for wasm32-wasip1".to_owned()),
    }
}

fn invalid(error: impl std::fmt::Display) -> String {
    format!("is no valid module: {error}")
}

/// A module is begun without arguments, and says how it ended by its exit code.
fn check_entry(types: &Types, function: u32, entry: &str) -> Result<(), String> {
    let kind = types[types.as_ref().core_function_at(function)].unwrap_func();
    match kind.params().is_empty() && kind.results().is_empty() {
        true => Ok(()),
        false => Err(format!("its export {entry:?} takes or gives values; it must not")),
    }
}

fn check_import(module: &str, name: &str, kind: TypeRef) -> Result<(), String> {
    let shown = format!("{module}.{name}");
    if module != INTERFACE || !matches!(kind, TypeRef::Func(_)) {
        return Err(format!("imports {shown}, but workers give {INTERFACE} only"));
    }
    if name.starts_with(SOCKETS) {
        return Err(format!("imports {shown}, but programs have no network"));
    }
    match CALLS.contains(&name) {
        true => Ok(()),
        false => Err(format!("imports {shown}, which {INTERFACE} does not have")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, entry: &str) -> String {
        let bytes = wat::parse_str(text).expect("a module");
        check_module(&bytes, entry).err().unwrap_or_default()
    }

    // B4-39
    #[test]
    fn b4_39_modules_that_cannot_run_are_refused_with_the_name() {
        let memory = r#"(memory (export "memory") 1)"#;
        let start = r#"(func (export "_start"))"#;
        assert_eq!(check(&format!("(module {memory} {start})"), "_start"), "");
        assert!(check(&format!("(module {memory} {start})"), "main").contains("\"main\""));
        assert!(check(&format!("(module {start})"), "_start").contains("no memory"));
        let takes = format!(r#"(module {memory} (func (export "_start") (param i32)))"#);
        assert!(check(&takes, "_start").contains("takes or gives"));
        let import = format!(r#"(module (import "env" "fork" (func)) {memory} {start})"#);
        assert!(check(&import, "_start").contains("env.fork"));
        let socket = format!(
            r#"(module (import "wasi_snapshot_preview1" "sock_accept" (func)) {memory} {start})"#
        );
        assert!(check(&socket, "_start").contains("no network"));
        let unknown =
            format!(r#"(module (import "wasi_snapshot_preview1" "fork" (func)) {memory} {start})"#);
        assert!(check(&unknown, "_start").contains("wasi_snapshot_preview1.fork, which"));
        let component = b"\0asm\x0d\0\x01\0";
        assert!(check_module(component, "_start").unwrap_err().contains("no valid module"));
        let threads = format!(r#"(module (memory 1 1 shared) {memory} {start})"#);
        assert!(check(&threads, "_start").contains("no valid module"));
        assert!(check_module(b"#!/bin/sh", "_start").unwrap_err().contains("no WebAssembly"));
        assert!(check_module(b"\0asm\x01\0\0\0\xff", "_start").unwrap_err().contains("no valid"));
    }
}
