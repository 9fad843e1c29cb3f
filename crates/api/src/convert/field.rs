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
