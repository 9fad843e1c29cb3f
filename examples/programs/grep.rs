//! Finds the lines of all inputs that contain the setting `pattern`, as a WebAssembly module without any library.
//!
//! Build and push it with:
//!   rustc --edition 2024 -O --target wasm32-wasip1 examples/programs/grep.rs -o find-lines.wasm
//!   ikada program push find-lines.wasm
//!   ikada task enqueue --program find-lines --set pattern=error --input log.txt=logs-of-mine/today.txt

use std::io::Write;
use std::{env, fs, io, process};

fn main() -> io::Result<()> {
    let Ok(pattern) = env::var("IKADA_SETTING_PATTERN") else {
        eprintln!("set pattern to what you look for");
        // Trying again cannot mend that.
        process::exit(65);
    };
    let folder = |name: &str| env::var(name).map_err(io::Error::other);
    let mut found = io::BufWriter::new(fs::File::create(format!("{}/lines.txt", folder("IKADA_OUT")?))?);
    let mut lines = 0u64;
    for entry in fs::read_dir(folder("IKADA_IN")?)? {
        let entry = entry?;
        let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains(&pattern)) {
            writeln!(found, "{}:{}: {line}", entry.file_name().to_string_lossy(), number + 1)?;
            lines += 1;
        }
    }
    found.flush()?;
    fs::write(folder("IKADA_RESULT")?, format!("{{\"lines\": {lines}}}"))
}
