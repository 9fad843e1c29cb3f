//! For pipes: names only, one per line.

use super::{Document, Renderer};
use crate::failure::Failure;

pub(super) struct Quiet;

impl Renderer for Quiet {
    fn render(&self, document: &dyn Document) -> Result<String, Failure> {
        Ok(document.names().into_iter().map(|name| name + "\n").collect())
    }
}
