//! For programs: the document as the API gave it.

use super::{Document, Renderer};
use crate::failure::Failure;

pub(super) struct Json;

impl Renderer for Json {
    fn render(&self, document: &dyn Document) -> Result<String, Failure> {
        let mut text = document.json().map_err(|error| {
            Failure::failed(format!("the data cannot be written as JSON: {error}"))
        })?;
        text.push('\n');
        Ok(text)
    }
}
