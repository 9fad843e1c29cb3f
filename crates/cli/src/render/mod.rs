//! Data for people, programs and pipes: one trait, three renderers.

mod document;
mod fit;
mod heard;
mod json;
mod paint;
mod progress;
mod quiet;
mod table;
mod terminal;
mod time;
mod timeline;

use std::borrow::Cow;
use std::io::IsTerminal;

use clap::ValueEnum;

pub(crate) use document::{ClientCertificate, Document, Grid, JoinTokenPage, S3Key, StoredToken};
pub(crate) use heard::{put, say, while_heard};
pub(crate) use progress::{bar, bytes_bar, counter, spinner};
pub(crate) use terminal::{Terminal, plain};
pub(crate) use time::moment;
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
    kind: OutputKind,
    renderer: Box<dyn Renderer>,
}

impl Screen {
    /// `wide` cells are not cut to the width of the terminal.
    pub(crate) fn new(kind: OutputKind, wide: bool) -> Screen {
        let renderer: Box<dyn Renderer> = match kind {
            OutputKind::Table => Box::new(table_here(wide)),
            OutputKind::Json => Box::new(json::Json),
            OutputKind::Quiet => Box::new(quiet::Quiet),
        };
        Screen { kind, renderer }
    }

    /// How data is printed.
    pub(crate) fn kind(&self) -> OutputKind {
        self.kind
    }

    /// Prints a document in the place of the one before, where that can be. Without a reader it fails.
    pub(crate) fn show_again(&mut self, document: &dyn Document) -> Result<(), Failure> {
        let text = self.renderer.render(document)?;
        match self.kind == OutputKind::Table && std::io::stdout().is_terminal() {
            // To the upper left corner, over an empty page.
            true => put(format!("\u{1b}[H\u{1b}[2J{}", plain(&text)).as_bytes()),
            false => put(here(&text).as_bytes()),
        }
    }

    /// Prints the next document of a stream that is followed. Without a reader it fails.
    pub(crate) fn show_next(&mut self, document: &dyn Document) -> Result<(), Failure> {
        put(here(&self.renderer.render_more(document)?).as_bytes())
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

/// Tables for whatever standard output is.
fn table_here(wide: bool) -> table::Table {
    if !std::io::stdout().is_terminal() {
        return table::Table::default();
    }
    let size = console::Term::stdout().size_checked();
    let width = size.map(|(_, columns)| usize::from(columns)).filter(|_| !wide);
    let colour = paint::is_wanted(|name| std::env::var(name).ok());
    table::Table { width, colour, is_terminal: true }
}

/// Puts text on standard output; on a terminal it may set colours and do nothing else, whoever wrote parts of it.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    match put(here(text).as_bytes()) {
        // The reader of a pipe has seen enough; that is no failure.
        Err(Failure::Unheard) => Ok(()),
        other => other,
    }
}

/// Text as it may stand on whatever standard output is.
fn here(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { plain(text).into() } else { text.into() }
}

#[cfg(test)]
mod render_test;
