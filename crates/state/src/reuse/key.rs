//! The digest of a task's work: all that decides what it brings. Two tasks with the same digest are the same work. And those
//! of what it reads and what it brought, for whoever compares attempts.

use crate::hash::encode_into;
use crate::{Digest, Input, InputSource, Work};

/// Begins every encoding; another meaning of the fields would need another.
const FORM: u8 = 1;

impl Work {
    /// Digest of program, settings, inputs and payload; none if one of them is not known by its content: a function inside a
    /// worker, an address, an object whose digest nobody looked up; and none if its outputs are to be brought somewhere.
    /// Which task or job it is of plays no part.
    pub fn digest(&self, payload: &[u8]) -> Option<Digest> {
        if self.output_url.is_some() {
            return None;
        }
        let program = self.program.digest?;
        let mut bytes = Vec::with_capacity(512);
        let counts = (self.settings.len() as u64, self.inputs.len() as u64);
        encode_into(&(FORM, self.program.kind, program, &self.program.entry), &mut bytes);
        encode_into(&counts, &mut bytes);
        for setting in &self.settings {
            encode_into(setting, &mut bytes);
        }
        for input in &self.inputs {
            add_input(input, &mut bytes)?;
        }
        bytes.extend_from_slice(payload);
        Some(Digest(*blake3::hash(&bytes).as_bytes()))
    }

    /// Digest of the inputs, by their names and contents; none if there are none, or one is not known by its content.
    pub fn inputs_digest(&self) -> Option<Digest> {
        if self.inputs.is_empty() {
            return None;
        }
        let mut bytes = Vec::with_capacity(512);
        encode_into(&(FORM, self.inputs.len() as u64), &mut bytes);
        for input in &self.inputs {
            add_input(input, &mut bytes)?;
        }
        Some(Digest(*blake3::hash(&bytes).as_bytes()))
    }
}

fn add_input(input: &Input, bytes: &mut Vec<u8>) -> Option<()> {
    encode_into(&input.name, bytes);
    match &input.source {
        InputSource::Object { digest, offset, length, .. } => {
            encode_into(&((*digest)?, *offset, *length), bytes);
        }
        InputSource::Text(text) => encode_into(text, bytes),
        InputSource::Url { .. } => return None,
    }
    Some(())
}

/// Digest of files by their names, which are sorted, and contents; none if there are none.
pub(crate) fn digest_of_parts(parts: &[(&str, Digest)]) -> Option<Digest> {
    if parts.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(512);
    encode_into(&(FORM, parts.len() as u64), &mut bytes);
    parts.iter().for_each(|part| encode_into(part, &mut bytes));
    Some(Digest(*blake3::hash(&bytes).as_bytes()))
}
