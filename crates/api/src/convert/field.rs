//! A refused field.

use ikada_state::NameError;

use crate::problem::Problem;

/// A value of the request that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {detail}")]
pub struct FieldError {
    /// Which field, as a path into the request.
    pub field: String,
    /// Stable code: `bad_name`, `bad_value`, `too_large`, `key_conflict`, `unknown_program` or `bad_module`.
    pub code: &'static str,
    /// What is wrong with it.
    pub detail: String,
}

impl FieldError {
    /// A value outside its bounds.
    pub fn bad_value(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), code: "bad_value", detail: detail.into() }
    }

    /// A value that is too large.
    pub fn too_large(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), code: "too_large", detail: detail.into() }
    }

    /// A key that disagrees with the task's handle or its parent.
    pub fn key_conflict(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), code: "key_conflict", detail: detail.into() }
    }

    /// The same error, one level further out.
    pub fn inside(mut self, place: &str) -> FieldError {
        self.field = format!("{place}.{}", self.field);
        self
    }
}

impl From<&FieldError> for Problem {
    fn from(error: &FieldError) -> Problem {
        let status = if error.code == "too_large" { 413 } else { 400 };
        Problem::new(status, error.code, "bad request", error.detail.clone())
            .with_field(error.field.clone())
    }
}

/// Most refused fields that one error lists.
const LISTED_MAX: usize = 32;

/// Everything that is wrong with a document, so that its sender can mend it in one go.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<FieldError>);

impl Found {
    /// The value, or nothing and a note of what is wrong.
    pub(super) fn take<T>(&mut self, read: Result<T, FieldError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// Fine, or one error that lists all: it has the field and the code of the first.
    pub(super) fn verdict(self) -> Result<(), FieldError> {
        let mut errors = self.0.into_iter();
        let Some(mut all) = errors.next() else { return Ok(()) };
        let rest: Vec<FieldError> = errors.collect();
        if rest.is_empty() {
            return Err(all);
        }
        let words: Vec<String> = rest.iter().take(LISTED_MAX).map(FieldError::to_string).collect();
        all.detail = format!("{all}; {}", words.join("; "));
        if rest.len() > LISTED_MAX {
            all.detail.push_str(&format!("; and {} more", rest.len() - LISTED_MAX));
        }
        Err(all)
    }
}

/// Parses a name and, if it is refused, says of which field.
pub fn parse_name<T>(
    field: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, NameError>,
) -> Result<T, FieldError> {
    parse(text).map_err(|error| FieldError {
        field: field.to_owned(),
        code: "bad_name",
        detail: error.to_string(),
    })
}
