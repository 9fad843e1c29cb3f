//! Counts the words of all inputs, as a WebAssembly module without any library.
//!
//! Build and push it with:
//!   rustc --edition 2024 -O --target wasm32-wasip1 examples/programs/wordcount.rs -o count-words.wasm
//!   ikada program push count-words.wasm
//!   ikada job run --map count-words --input '*.txt' --reduce merge

use std::collections::BTreeMap;
use std::io::Write;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = |name: &str| env::var(name).map_err(io::Error::other);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (inputs, outputs) = (folder("IKADA_IN")?, folder("IKADA_OUT")?);
    let mut files = 0;
    for entry in fs::read_dir(inputs)? {
        let text = String::from_utf8_lossy(&fs::read(entry?.path())?).to_lowercase();
        for word in text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        files += 1;
    }
    let mut table = io::BufWriter::new(fs::File::create(format!("{outputs}/counts.tsv"))?);
    for (word, count) in &counts {
        writeln!(table, "{word}\t{count}")?;
    }
    table.flush()?;
    let words: u64 = counts.values().sum();
    fs::write(folder("IKADA_RESULT")?, format!("{{\"words\": {words}, \"distinct\": {}}}", counts.len()))?;
    println!("{files} files, {words} words");
    Ok(())
}
