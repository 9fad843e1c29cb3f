//! Third helper: runs one WebAssembly module, inside the walls that the supervisor has put around it.
//!
//! The module's own walls come first: it reaches memory, clocks, randomness, its standard streams and its task's folder,
//! and nothing else; memory, tables, stack, steps, time and the effort of compiling it are bounded (X11). A hole in the
//! engine still leaves it in a process without rights, network or files of others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{
    Config, Engine, Linker, Module, OptLevel, Store, StoreLimits, StoreLimitsBuilder, Strategy,
};
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// Largest module.
const MODULE_BYTES_MAX: u64 = 10 << 20;
/// Most processor time that compiling may take.
const COMPILE_CPU_MAX: Duration = Duration::from_secs(5);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Deepest stack of the module.
const STACK_BYTES_MAX: usize = 1 << 20;
/// Most entries of a table.
const TABLE_ENTRIES_MAX: usize = 100_000;
/// Steps per second of allowed time, where nobody sets a bound of their own: more than any processor takes, so that only a
/// broken clock meets it.
const STEPS_PER_SECOND: u64 = 100_000_000_000;
/// Exit code of a module that failed by itself (`EX_SOFTWARE`).
const EXIT_TRAPPED: u8 = 70;

struct State {
    wasi: WasiP1Ctx,
    limits: StoreLimits,
}

/// How much a module may use.
struct Bounds {
    memory_bytes: u64,
    wall_ms: u64,
    steps: u64,
}

/// Runs what the arguments say: file, entry, bytes of memory, milliseconds, steps.
pub(super) fn run_module(arguments: &[OsString]) -> ExitCode {
    let text = |place: usize| arguments.get(place).and_then(|word| word.to_str());
    let number = |place: usize| text(place).and_then(|word| word.parse::<u64>().ok());
    let (Some(file), Some(entry), Some(memory_bytes), Some(wall_ms), Some(steps)) =
        (text(0), text(1), number(2), number(3), number(4))
    else {
        eprintln!("the module's runner was given no good order");
        return ExitCode::from(EXIT_TRAPPED);
    };
    match run(Path::new(file), entry, &Bounds { memory_bytes, wall_ms, steps }) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(EXIT_TRAPPED)
        }
    }
}

fn run(file: &Path, entry: &str, bounds: &Bounds) -> wasmtime::Result<u8> {
    let wall_ms = bounds.wall_ms;
    let engine = Engine::new(&config())?;
    let module = compile(&engine, file)?;
    let mut linker: Linker<State> = Linker::new(&engine);
    wasmtime_wasi::p1::add_to_linker_sync(&mut linker, |state: &mut State| &mut state.wasi)?;
    let limits = StoreLimitsBuilder::new()
        .memory_size(usize::try_from(bounds.memory_bytes).unwrap_or(usize::MAX))
        .table_elements(TABLE_ENTRIES_MAX)
        .instances(1)
        .tables(8)
        .memories(1)
        .build();
    let mut store = Store::new(&engine, State { wasi: world()?, limits });
    store.limiter(|state| &mut state.limits);
    let steps = (wall_ms / 1_000 + 1).saturating_mul(STEPS_PER_SECOND);
    store.set_fuel(steps.min(bounds.steps))?;
    store.set_epoch_deadline(1);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(wall_ms));
        engine.increment_epoch();
    });
    let instance = linker.instantiate(&mut store, &module)?;
    let begin = instance.get_typed_func::<(), ()>(&mut store, entry)?;
    match begin.call(&mut store, ()) {
        Ok(()) => Ok(0),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => Ok(u8::try_from(exit.0).unwrap_or(EXIT_TRAPPED)),
            None => Err(error),
        },
    }
}

/// What compilers for WASI preview 1 emit, and no more.
fn config() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .wasm_backtrace_max_frames(None)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_extended_const(false)
        .wasm_wide_arithmetic(false);
    config
}

/// Compiles in a thread of its own; too much effort ends the process.
fn compile(engine: &Engine, file: &Path) -> wasmtime::Result<Module> {
    let size = std::fs::metadata(file)?.len();
    if size > MODULE_BYTES_MAX {
        return Err(wasmtime::Error::msg(format!(
            "the module has {size} bytes, at most {MODULE_BYTES_MAX} are allowed"
        )));
    }
    let bytes = std::fs::read(file)?;
    let engine = engine.clone();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(Module::from_binary(&engine, &bytes)));
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(compiled) => return compiled,
            Err(RecvTimeoutError::Timeout) if cpu_time() < COMPILE_CPU_MAX => {}
            Err(_) => {
                eprintln!("the module takes more than {} s to compile", COMPILE_CPU_MAX.as_secs());
                std::process::exit(i32::from(EXIT_TRAPPED));
            }
        }
    }
}

fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// The task's folder as the root of all files, the streams, and the environment with paths as the module sees them.
fn world() -> wasmtime::Result<WasiP1Ctx> {
    let folder = std::env::current_dir()?;
    let mut builder = WasiCtxBuilder::new();
    builder.inherit_stdio().arg("module").preopened_dir(&folder, "/", FsPerms::ReadWrite)?;
    builder.allow_blocking_current_thread(true);
    for (name, value) in std::env::vars() {
        if name == "PATH" {
            continue;
        }
        let path = PathBuf::from(&value);
        let shown = match path.strip_prefix(&folder) {
            Ok(below) => format!("/{}", below.display()),
            Err(_) => value,
        };
        builder.env(name, shown);
    }
    Ok(builder.build_p1())
}
