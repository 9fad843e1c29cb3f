//! The digest of a task's work: all that decides what it brings. Two tasks with the same digest are the same work.

use crate::hash::encode_into;
use crate::{Digest, InputSource, Work};

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
            encode_into(&input.name, &mut bytes);
            match &input.source {
                InputSource::Object { digest, offset, length, .. } => {
                    encode_into(&((*digest)?, *offset, *length), &mut bytes);
                }
                InputSource::Text(text) => encode_into(text, &mut bytes),
                InputSource::Url { .. } => return None,
            }
        }
        bytes.extend_from_slice(payload);
        Some(Digest(*blake3::hash(&bytes).as_bytes()))
    }
}
