//! Whether a module can run at all: valid, begun by what it exports, and asking for nothing that workers do not give.

use wasmparser::{ExternalKind, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// The only interface that modules may import from.
const INTERFACE: &str = "wasi_snapshot_preview1";
/// Calls of that interface that workers do not give: there is no network.
const WITHHELD: &[&str] = &["sock_accept", "sock_recv", "sock_send", "sock_shutdown"];
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
    let types = Validator::new_with_features(FEATURES).validate_all(bytes);
    let types = types.map_err(|error| format!("is no valid module: {error}"))?;
    let (mut has_entry, mut has_memory) = (false, false);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| format!("is no valid module: {error}"))? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|error| format!("is no valid module: {error}"))?;
                    check_import(import.module, import.name, import.ty)?;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export.map_err(|error| format!("is no valid module: {error}"))?;
                    has_memory |= export.kind == ExternalKind::Memory && export.name == "memory";
                    if export.name == entry && export.kind == ExternalKind::Func {
                        let kind = types.as_ref().core_function_at(export.index);
                        let kind = types[kind].unwrap_func();
                        if !kind.params().is_empty() || !kind.results().is_empty() {
                            return Err(format!(
                                "its export {entry:?} takes or gives values; it must not"
                            ));
                        }
                        has_entry = true;
                    }
                }
            }
            _ => {}
        }
    }
    match (has_entry, has_memory) {
        (false, _) => {
            Err(format!("exports no function {entry:?}; build it as a program, or name its entry"))
        }
        (true, false) => Err("exports no memory; build it for wasm32-wasip1".to_owned()),
        (true, true) => Ok(()),
    }
}

fn check_import(module: &str, name: &str, kind: TypeRef) -> Result<(), String> {
    let shown = format!("{module}.{name}");
    if module != INTERFACE || !matches!(kind, TypeRef::Func(_)) {
        return Err(format!("imports {shown}, but workers give {INTERFACE} only"));
    }
    if WITHHELD.contains(&name) {
        return Err(format!("imports {shown}, but programs have no network"));
    }
    Ok(())
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
        let threads = format!(r#"(module (memory 1 1 shared) {memory} {start})"#);
        assert!(check(&threads, "_start").contains("no valid module"));
        assert!(check_module(b"#!/bin/sh", "_start").unwrap_err().contains("no WebAssembly"));
        assert!(check_module(b"\0asm\x01\0\0\0\xff", "_start").unwrap_err().contains("no valid"));
    }
}
