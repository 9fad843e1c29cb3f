//! Data for people, programs and pipes: one trait, three renderers.

mod document;
mod json;
mod quiet;
mod table;
mod time;
mod timeline;

use std::io::Write;

use clap::ValueEnum;

pub(crate) use document::{ClientCertificate, Document, Grid, JoinTokenPage, S3Key};
pub(crate) use timeline::draw;

use crate::failure::Failure;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputKind {
    /// For people.
    Table,
    /// For programs: the API's own documents.
    Json,
    /// For pipes: only the names, one per line.
    Quiet,
}

/// Turns a document into text.
pub(crate) trait Renderer {
    /// The text, ending with a line end unless empty.
    fn render(&self, document: &dyn Document) -> Result<String, Failure>;

    /// The text of one more document of the same kind, as of a stream that is followed.
    fn render_more(&self, document: &dyn Document) -> Result<String, Failure> {
        self.render(document)
    }
}

/// Where data goes.
pub(crate) struct Screen {
    renderer: Box<dyn Renderer>,
}

impl Screen {
    pub(crate) fn new(kind: OutputKind) -> Screen {
        let renderer: Box<dyn Renderer> = match kind {
            OutputKind::Table => Box::new(table::Table),
            OutputKind::Json => Box::new(json::Json),
            OutputKind::Quiet => Box::new(quiet::Quiet),
        };
        Screen { renderer }
    }

    /// Prints a document.
    pub(crate) fn show(&mut self, document: &dyn Document) -> Result<(), Failure> {
        write(&self.renderer.render(document)?)
    }

    /// Prints a document that goes on where the one before ended.
    pub(crate) fn show_more(&mut self, document: &dyn Document) -> Result<(), Failure> {
        write(&self.renderer.render_more(document)?)
    }
}

/// Puts text on standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader of a pipe has seen enough; that is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod render_test;
