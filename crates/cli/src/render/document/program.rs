//! Programs.

use ikada_api::v1::{ProgramInfo, ProgramPage, ProgramRemoved};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::moment;

const HEADINGS: &[&str] = &["name", "kind", "pushed", "digest"];
/// Enough of a digest to tell programs apart.
const DIGEST_SHOWN: usize = 16;

fn row(program: &ProgramInfo) -> Vec<String> {
    let digest = program.digest.as_ref().map(|digest| digest.chars().take(DIGEST_SHOWN).collect());
    vec![
        program.name.clone(),
        program.kind.clone(),
        program.pushed_ms.map_or_else(|| "built in".to_owned(), moment),
        or_dash::<String>(digest),
    ]
}

impl Document for ProgramPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: self.programs.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.programs.iter().map(|program| program.name.clone()).collect()
    }
}

impl Document for ProgramInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let mut rows: Vec<Vec<String>> = HEADINGS
            .iter()
            .zip(row(self))
            .map(|(heading, value)| vec![(*heading).to_owned(), value])
            .collect();
        if let Some(manifest) = &self.manifest {
            let mut add = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
            if !manifest.argv.is_empty() {
                add("command", manifest.argv.join(" "));
            }
            if let Some(entry) = &manifest.entry {
                add("entry", entry.clone());
            }
            if let Some(file) = &manifest.file {
                add("file", format!("{} bytes", file.size));
            }
        }
        vec![Grid { headings: &["field", "value"], rows }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl Document for ProgramRemoved {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: &["removed"], rows: vec![vec![self.name.clone()]] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
